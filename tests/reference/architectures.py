"""Small models of kinds that the demos are not, for make_models.py (in C++: small_architectures.cc and
sensor_architectures.cc of tests/models)."""

import math
from typing import Callable, Dict, Tuple

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

Batch = Dict[str, Tensor]
Result = Tuple[Tensor, Tensor]


class ResidualBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.norm1 = nn.GroupNorm(4, inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.time = nn.Linear(16, outputs)
        self.norm2 = nn.GroupNorm(4, outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.skip = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        h = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(time))[:, :, None, None]
        return self.conv2(F.silu(self.norm2(h))) + self.skip(x)


class UNet(nn.Module):
    """Predicts the noise of an image at a time of its diffusion."""

    def __init__(self) -> None:
        super().__init__()
        self.time1 = nn.Linear(8, 16)
        self.time2 = nn.Linear(16, 16)
        self.first = nn.Conv2d(2, 8, 3, padding=1)
        self.down_block = ResidualBlock(8, 8)
        self.down = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.middle = ResidualBlock(16, 16)
        self.norm = nn.GroupNorm(4, 16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.up = nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1)
        self.up_block = ResidualBlock(16, 8)
        self.last = nn.Conv2d(8, 2, 3, padding=1)

    def forward(self, x: Tensor, steps: Tensor) -> Tensor:
        frequencies = torch.exp(torch.arange(4, dtype=x.dtype) * -(math.log(10000.0) / 4))
        angles = steps[:, None] * frequencies
        time = self.time2(F.silu(self.time1(torch.cat([angles.sin(), angles.cos()], 1))))
        wide = self.down_block(self.first(x), time)
        h = self.middle(self.down(wide), time)
        pixels = self.norm(h).flatten(2).transpose(1, 2)
        h = h + self.attention(pixels, pixels, pixels)[0].transpose(1, 2).reshape(h.shape)
        return self.last(self.up_block(torch.cat([self.up(h), wide], 1), time))


def unet_loss(model: nn.Module, batch: Batch) -> Result:
    y = model(batch["x"], batch["steps"])
    return y, F.mse_loss(y, batch["y"])


class MixtureOfExperts(nn.Module):
    """Two of four experts for each token, and the router's z-loss (arXiv 2202.08906)."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 16)
        self.router = nn.Linear(16, 4, bias=False)
        self.up = nn.Parameter(torch.empty(4, 24, 16))
        self.down = nn.Parameter(torch.empty(4, 16, 24))
        self.output = nn.Linear(16, vocabulary)

    def forward(self, tokens: Tensor) -> Result:
        x = self.embedding(tokens)
        scores = self.router(x)
        best, experts = scores.topk(2, -1)
        weights = torch.zeros_like(scores).scatter_add(-1, experts, best.softmax(-1))
        hidden = F.relu(torch.einsum("btc,ehc->bteh", x, self.up)) ** 2
        mixed = torch.einsum("bteh,ech->btec", hidden, self.down)
        y = self.output(x + torch.einsum("btec,bte->btc", mixed, weights))
        return y, scores.logsumexp(-1).square().mean()


def mixture_loss(model: nn.Module, batch: Batch) -> Result:
    logits, z_loss = model(batch["x"])
    return logits, F.cross_entropy(logits.flatten(0, 1), batch["y"].flatten()) + 0.01 * z_loss


class GraphAttention(nn.Module):
    """Attention along the edges of graphs (arXiv 1710.10903)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.projection = nn.Linear(inputs, outputs, bias=False)
        self.source = nn.Linear(outputs, 1)
        self.target = nn.Linear(outputs, 1, bias=False)

    def forward(self, nodes: Tensor, source: Tensor, target: Tensor) -> Tensor:  # (N, C), (E), (E)
        h = self.projection(nodes)
        scores = F.leaky_relu(self.source(h)[source] + self.target(h)[target], 0.2)
        shares = scores.exp()
        totals = torch.zeros_like(h[:, :1]).index_add(0, target, shares)
        return torch.zeros_like(h).index_add(0, target, h[source] * (shares / totals[target]))


class GraphNetwork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer1 = GraphAttention(6, 12)
        self.layer2 = GraphAttention(12, 4)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:  # (B, N, C), (B, 2, E)
        edges = edges + x.shape[1] * torch.arange(len(x))[:, None, None]  # among the nodes of all graphs
        source, target = edges[:, 0].flatten(), edges[:, 1].flatten()
        h = F.elu(self.layer1(x.flatten(0, 1), source, target))
        return self.layer2(h, source, target).reshape(x.shape[0], x.shape[1], 4)


def graph_loss(model: nn.Module, batch: Batch) -> Result:
    logits = model(batch["x"], batch["edges"])
    return logits, F.cross_entropy(logits.flatten(0, 1), batch["y"].flatten())


class StateSpace(nn.Module):
    """A selective state space model (arXiv 2312.00752), its scan step by step."""

    def __init__(self, channels: int, states: int) -> None:
        super().__init__()
        self.input = nn.Linear(channels, 2 * channels, bias=False)
        self.conv = nn.Conv1d(channels, channels, 3, padding=2, groups=channels)
        self.parameters_of = nn.Linear(channels, 2 * states, bias=False)
        self.step = nn.Linear(channels, channels)
        self.log_decay = nn.Parameter(torch.empty(channels, states))
        self.skip = nn.Parameter(torch.empty(channels))
        self.output = nn.Linear(channels, channels, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x, gate = self.input(x).chunk(2, -1)
        x = F.silu(self.conv(x.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        from_x, to_y = self.parameters_of(x).chunk(2, -1)
        step = F.softplus(self.step(x))
        decay = torch.exp(step[..., None] * -self.log_decay.exp())
        added = (step * x)[..., None] * from_x[:, :, None]
        h = torch.zeros_like(added[:, 0])
        results = []
        for t in range(x.shape[1]):
            h = decay[:, t] * h + added[:, t]
            results.append((h * to_y[:, t, None]).sum(-1))
        return self.output((torch.stack(results, 1) + self.skip * x) * F.silu(gate))


def state_space_loss(model: nn.Module, batch: Batch) -> Result:
    y = model(batch["x"])
    return y, F.mse_loss(y, batch["y"])


class Adversaries(nn.Module):
    """A generator and a critic, each with its loss of the same step."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 6))
        self.critic = nn.Sequential(nn.Linear(6, 16), nn.Mish(), nn.Linear(16, 1))


def adversaries_loss(model: nn.Module, batch: Batch) -> Result:
    made = model.generator(batch["noise"])
    constant = {name: value.detach() for name, value in model.critic.named_parameters()}
    score = functional_call(model.critic, constant, made)
    real, fake = model.critic(batch["y"]), model.critic(made.detach())
    return score, (F.softplus(-score) + F.softplus(-real) + F.softplus(fake)).mean()


class Tagger(nn.Module):
    """A bidirectional LSTM and a chain of tags: the negative log-likelihood of a conditional random field."""

    def __init__(self, vocabulary: int, tags: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 8)
        self.lstm = nn.LSTM(8, 10, 2, batch_first=True, bidirectional=True)
        self.output = nn.Linear(20, tags)
        self.transition = nn.Parameter(torch.empty(tags, tags))  # from, to

    def forward(self, tokens: Tensor) -> Tensor:
        return self.output(self.lstm(self.embedding(tokens))[0])


def tagger_loss(model: nn.Module, batch: Batch) -> Result:
    scores, tags = model(batch["x"]), batch["y"]
    path = scores.gather(-1, tags[..., None]).sum((1, 2)) + model.transition[tags[:, :-1], tags[:, 1:]].sum(1)
    total = scores[:, 0]
    for t in range(1, scores.shape[1]):
        total = (total[:, :, None] + model.transition).logsumexp(1) + scores[:, t]
    return scores, (total.logsumexp(1) - path).mean()


class Quantiser(nn.Module):
    """Encodes images by the nearest vectors of a codebook, straight-through (VQ-VAE, arXiv 1711.00937)."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Conv2d(4, 6, 3, padding=1)
        self.codebook = nn.Embedding(9, 6)
        self.prelu = nn.PReLU(6)
        self.decoder = nn.Conv2d(6, 4, 3, padding=1)

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:  # images of one channel
        z = self.encoder(F.pixel_unshuffle(x, 2)).permute(0, 2, 3, 1)
        distance = (z[..., None, :] - self.codebook.weight).square().sum(-1)
        q = self.codebook(distance.argmin(-1))
        commitment = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
        through = (z + (q - z).detach()).permute(0, 3, 1, 2)
        return F.pixel_shuffle(self.decoder(self.prelu(through)), 2), commitment


def quantiser_loss(model: nn.Module, batch: Batch) -> Result:
    y, commitment = model(batch["x"])
    return y, F.mse_loss(y, batch["x"]) + commitment


class Translator(nn.Module):
    """An encoder and a decoder with T5's relative positions: a bias for each distance and head, unscaled scores."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 16)
        self.distances = nn.Embedding(7, 2)
        for block in ("encoder", "decoder", "cross"):
            setattr(self, block, nn.Linear(16, 48, bias=False))
            setattr(self, block + "_out", nn.Linear(16, 16, bias=False))
            setattr(self, block + "_norm", nn.RMSNorm(16, eps=1e-6))

    def attend(self, block: str, x: Tensor, memory: Tensor, bias: Tensor) -> Tensor:
        weights = getattr(self, block).weight.chunk(3)
        q, k, v = (F.linear(source, weight).unflatten(-1, (2, 8)).transpose(1, 2)
                   for source, weight in zip((getattr(self, block + "_norm")(x), memory, memory), weights))
        y = F.scaled_dot_product_attention(q, k, v, bias, scale=1.0)
        return x + getattr(self, block + "_out")(y.transpose(1, 2).flatten(2))

    def bias(self, queries: int, keys: int) -> Tensor:
        distance = torch.arange(keys) - torch.arange(queries)[:, None]
        return self.distances(distance.clamp(-3, 3) + 3).permute(2, 0, 1)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        source = self.embedding(memory)
        source = self.attend("encoder", source, source, self.bias(source.shape[1], source.shape[1]))
        h = self.embedding(x)
        later = torch.full((h.shape[1], h.shape[1]), -1e9, dtype=h.dtype).triu(1)
        h = self.attend("decoder", h, h, self.bias(h.shape[1], h.shape[1]) + later)
        h = self.attend("cross", h, source, torch.zeros((), dtype=h.dtype).expand(1, 1, h.shape[1], source.shape[1]))
        return h @ self.embedding.weight.T


def translator_loss(model: nn.Module, batch: Batch) -> Result:
    logits = model(batch["x"], batch["memory"])
    return logits, F.cross_entropy(logits.flatten(0, 1), batch["y"].flatten())


class FastWeights(nn.Module):
    """One step of gradient descent inside of the model, on fixed points (MAML, arXiv 1703.03400)."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x: Tensor) -> Tensor:
        points = (torch.arange(12, dtype=x.dtype) / 6 - 1).reshape(4, 3)
        own = dict(self.net.named_parameters())
        slopes = torch.autograd.grad(self.net(points).square().mean(), tuple(own.values()), create_graph=True)
        fast = {name: value - 0.5 * slope for (name, value), slope in zip(own.items(), slopes)}
        return functional_call(self.net, fast, x)


def fast_weights_loss(model: nn.Module, batch: Batch) -> Result:
    y = model(batch["x"])
    return y, F.mse_loss(y, batch["y"])


class Speech(nn.Module):
    """Texts of sounds, without an alignment."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(8, 12, 3, padding=1)
        self.gru = nn.GRU(12, 8, batch_first=True, bidirectional=True)
        self.output = nn.Linear(16, 6)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(self.gru(F.relu(self.conv(x.transpose(1, 2))).transpose(1, 2))[0])


def speech_loss(model: nn.Module, batch: Batch) -> Result:
    logits = model(batch["x"])
    log_probabilities = logits.log_softmax(-1).transpose(0, 1)
    return logits, F.ctc_loss(log_probabilities, batch["y"], batch["y_steps"], batch["y_lengths"])


class Looker(nn.Module):
    """Looks at the part of an image that it chooses itself (a spatial transformer, arXiv 1506.02025)."""

    def __init__(self) -> None:
        super().__init__()
        self.where1 = nn.Linear(64, 8)
        self.where2 = nn.Linear(8, 6)
        self.conv = nn.Conv2d(1, 4, 3)
        self.output = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        offset = 0.5 * self.where2(self.where1(x.flatten(1)).tanh())
        theta = offset.reshape(-1, 2, 3) + torch.eye(3, dtype=x.dtype)[:2]
        grid = F.affine_grid(theta, [len(x), 1, 6, 6], align_corners=False)
        seen = F.grid_sample(x, grid, align_corners=False)
        return self.output(F.softsign(self.conv(seen)).mean((2, 3)))


class Video(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv3d(2, 4, 3, padding=1)
        self.conv2 = nn.Conv3d(4, 6, (2, 3, 3), stride=(1, 2, 2), groups=2)
        self.output = nn.Linear(6, 5)

    def forward(self, x: Tensor) -> Tensor:
        h = F.max_pool3d(F.relu(self.conv1(x)), (1, 2, 2))
        return self.output(F.celu(self.conv2(h)).mean((2, 3, 4)))


def class_loss(model: nn.Module, batch: Batch) -> Result:
    logits = model(batch["x"])
    return logits, F.cross_entropy(logits, batch["y"])


class Field(nn.Module):
    """Colours of rays through a field of densities (NeRF, arXiv 2003.08934)."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(18, 16)
        self.output = nn.Linear(16, 4)

    def forward(self, points: Tensor) -> Tensor:  # along rays
        angles = (points[..., None] * torch.arange(3, dtype=points.dtype).exp2()).flatten(-2)
        h = self.output(F.relu(self.hidden(torch.cat([angles.sin(), angles.cos()], -1))))
        opacity = 1 - torch.exp(-F.softplus(h[..., 3]))
        passes = (1 - opacity).cumprod(1)
        arrives = torch.cat([torch.ones_like(passes[:, :1]), passes[:, :-1]], 1)
        return ((arrives * opacity)[..., None] * h[..., :3].sigmoid()).sum(1)


def field_loss(model: nn.Module, batch: Batch) -> Result:
    colour = model(batch["x"])
    return colour, F.mse_loss(colour, batch["y"])


def cases(steps: int, batch: int, vocabulary: int, language: Callable[[], Batch]) -> Dict[str, Callable]:
    """By name: functions that make (model, data, loss)."""

    def random(*shape: int) -> Tensor:
        return torch.randn(steps, batch, *shape)

    def numbers(most: int, *shape: int) -> Tensor:
        return torch.randint(most, (steps, batch, *shape))

    def graph() -> Tuple:
        ring = torch.stack([torch.arange(5), torch.arange(1, 6) % 5])  # so that every node has an edge to it
        edges = torch.cat([ring.expand(steps, batch, 2, 5), numbers(5, 2, 4)], -1)
        return GraphNetwork(), {"x": random(5, 6), "edges": edges, "y": numbers(4, 5)}, graph_loss

    def speech() -> Tuple:
        data = {"x": random(12, 8), "y": 1 + numbers(5, 4), "y_steps": 12 - numbers(3), "y_lengths": 1 + numbers(4)}
        return Speech(), data, speech_loss

    def translation() -> Tuple:
        data = language()
        return Translator(vocabulary), {**data, "memory": numbers(vocabulary, 7)}, translator_loss

    return {
        "unet": lambda: (UNet(), {"x": random(2, 8, 8), "y": random(2, 8, 8), "steps": 50 * random().abs()}, unet_loss),
        "mixture": lambda: (MixtureOfExperts(vocabulary), language(), mixture_loss),
        "graph": graph,
        "state_space": lambda: (StateSpace(8, 4), {"x": random(12, 8), "y": random(12, 8)}, state_space_loss),
        "adversaries": lambda: (Adversaries(), {"noise": random(4), "y": random(6)}, adversaries_loss),
        "tagger": lambda: (Tagger(vocabulary, 5), {**language(), "y": numbers(5, 12)}, tagger_loss),
        "quantiser": lambda: (Quantiser(), {"x": random(1, 8, 8)}, quantiser_loss),
        "translator": translation,
        "fast_weights": lambda: (FastWeights(), {"x": random(3), "y": random(1)}, fast_weights_loss),
        "speech": speech,
        "looker": lambda: (Looker(), {"x": random(1, 8, 8), "y": numbers(5)}, class_loss),
        "video": lambda: (Video(), {"x": random(2, 4, 8, 8), "y": numbers(5)}, class_loss),
        "field": lambda: (Field(), {"x": random(7, 3), "y": torch.rand(steps, batch, 3)}, field_loss),
    }
