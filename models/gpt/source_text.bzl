"""source_text: the sources that programs are built from, one after the other, as a training text."""

_SourcesInfo = provider(fields = ["files"])

# The attributes of rules that hold sources, and those that lead to further rules.
_SOURCES = ["srcs", "hdrs", "textual_hdrs"]
_EDGES = _SOURCES + ["deps", "implementation_deps"]

def _is_ours(file, workspace_name):
    return file.is_source and file.owner.workspace_name == workspace_name

def _collect_impl(target, ctx):
    workspace_name = Label("//models/gpt").workspace_name
    own = []
    inherited = []
    for name in _EDGES:
        labels = getattr(ctx.rule.attr, name, None) or []
        for label in labels if type(labels) == "list" else [labels]:
            if _SourcesInfo in label:
                inherited.append(label[_SourcesInfo].files)
    for name in _SOURCES:
        own += [file for file in getattr(ctx.rule.files, name, []) if _is_ours(file, workspace_name)]
    return [_SourcesInfo(files = depset(own, transitive = inherited))]

_collect = aspect(implementation = _collect_impl, attr_aspects = _EDGES)

def _source_text_impl(ctx):
    files = depset(transitive = [program[_SourcesInfo].files for program in ctx.attr.programs])
    by_path = {file.path: file for file in files.to_list()}
    inputs = ctx.files.documents + [by_path[path] for path in sorted(by_path)]
    arguments = ctx.actions.args()
    arguments.add(ctx.outputs.out)
    arguments.add_all(inputs)
    ctx.actions.run_shell(
        inputs = inputs,
        outputs = [ctx.outputs.out],
        arguments = [arguments],
        command = 'out=$1; shift; cat "$@" >"$out"',
        mnemonic = "SourceText",
    )
    outputs = [ctx.outputs.out]
    return [DefaultInfo(files = depset(outputs), runfiles = ctx.runfiles(files = outputs))]

source_text = rule(
    implementation = _source_text_impl,
    doc = "Concatenates `documents`, then every source file of this workspace behind `programs`.",
    attrs = {
        "programs": attr.label_list(aspects = [_collect]),
        "documents": attr.label_list(allow_files = True),
        "out": attr.output(mandatory = True),
    },
)
