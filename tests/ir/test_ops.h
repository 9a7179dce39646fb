// Ops with unusual signatures for the tests of the text form and of the verifier.
#pragma once

namespace zg {

// Registers all ops of the framework, and once:
//   test_many     0 or more inputs, 3 outputs: i64[2], f32[] and the type of the first input
//   test_options  one optional attribute of each type
//   test_sink     any inputs, no outputs
void RegisterTestOps();

}  // namespace zg
