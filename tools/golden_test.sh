#!/usr/bin/env bash
# golden_test.sh RUNNER FILE...: what a golden_test (golden_test.bzl) runs.
exec "$@"
