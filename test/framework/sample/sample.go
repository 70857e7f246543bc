// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sample chooses which cases of a long table a test runs. Each run chooses others at random, and prints how to repeat its
// choice. `make soak` runs all cases.
package sample

import (
	"flag"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// AllVariable makes tests run all cases.
	AllVariable = "JOBSET_ALL_CASES"
	// SeedVariable is the seed of a choice that is to be repeated.
	SeedVariable = "JOBSET_SAMPLE_SEED"
)

// started is the seed of this process unless the environment has one, so that one variable repeats the choices of all its tests.
var started = uint64(time.Now().UnixNano())

// Kinds returns one case of each kind, in the order of the table; all cases if the environment wants all, or if the command line names
// cases of a test.
func Kinds[C any](t testing.TB, cases []C, kind func(C) string) []C {
	t.Helper()
	if all() {
		return cases
	}
	seed := seedOf(t)
	dice := newDice(seed, t.Name())
	of := map[string][]int{}
	for i, c := range cases {
		of[kind(c)] = append(of[kind(c)], i)
	}
	var chosen []int
	for _, k := range slices.Sorted(maps.Keys(of)) {
		chosen = append(chosen, of[k][dice.IntN(len(of[k]))])
	}
	slices.Sort(chosen)
	t.Logf("runs %d of %d cases; repeat them with %s=%d, or run all with %s=1", len(chosen), len(cases), SeedVariable, seed, AllVariable)
	some := make([]C, 0, len(chosen))
	for _, i := range chosen {
		some = append(some, cases[i])
	}
	return some
}

// One returns the name of one case, or of all cases.
func One[C any](t testing.TB, cases map[string]C) []string {
	t.Helper()
	return Kinds(t, slices.Sorted(maps.Keys(cases)), func(string) string { return "" })
}

// all returns whether no case may be left out.
func all() bool {
	if os.Getenv(AllVariable) != "" {
		return true
	}
	run := flag.Lookup("test.run")
	return run != nil && strings.Contains(run.Value.String(), "/")
}

func seedOf(t testing.TB) uint64 {
	t.Helper()
	text := os.Getenv(SeedVariable)
	if text == "" {
		return started
	}
	given, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", SeedVariable, err)
	}
	return given
}

// newDice returns the source of the choices of one test, which do not depend on the tests that run beside it.
func newDice(seed uint64, test string) *rand.Rand {
	name := fnv.New64a()
	_, _ = name.Write([]byte(test))
	return rand.New(rand.NewPCG(seed, name.Sum64())) //nolint:gosec // choices, not secrets
}
