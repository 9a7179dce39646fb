#!/usr/bin/env bash
# golden_test.sh RUNNER FILE...: the program of a golden_test (golden_test.bzl).
exec "$@"
