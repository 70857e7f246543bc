// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stepsVariable names the situation and the size that TestDecideOnce decides about.
const stepsVariable = "PLAN_STEPS"

// TestDecideOnce makes the decision whose steps TestStepsAreLinear counts.
func TestDecideOnce(t *testing.T) {
	what, given := os.LookupEnv(stepsVariable)
	if !given {
		return // TestStepsAreLinear runs this test in a process of its own
	}
	name, sizes, _ := strings.Cut(what, "/")
	var replicatedJobs, jobs int
	if _, err := fmt.Sscanf(sizes, "%d/%d", &replicatedJobs, &jobs); err != nil {
		t.Fatal(err)
	}
	o := situations[name].of(replicatedJobs, jobs)
	Finish(o, Decide(o), Results{})
}

// TestStepsAreLinear counts the statements of this package that decisions run, and so finds loops within loops, however fast
// the machine is: a set that is four times as large needs four times as many of them.
func TestStepsAreLinear(t *testing.T) {
	const size, factor, limit = 400, 4, 5
	binary := filepath.Join(t.TempDir(), "plan.test")
	if out, err := exec.Command("go", "test", "-c", "-ldflags=-s -w", "-covermode=count", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the test with counters: %v\n%s", err, out)
	}
	for _, name := range slices.Sorted(maps.Keys(situations)) {
		for of, shape := range map[string][2]string{
			"replicatedJobs": {fmt.Sprintf("%d/1", size), fmt.Sprintf("%d/1", factor*size)},
			"Jobs":           {fmt.Sprintf("1/%d", size), fmt.Sprintf("1/%d", factor*size)},
		} {
			few, many := stepsOf(t, binary, name+"/"+shape[0]), stepsOf(t, binary, name+"/"+shape[1])
			t.Logf("%-12s %5d %-14s %7d steps, %5d: %7d, ratio %.2f", name, size, of, few, factor*size, many, float64(many)/float64(few))
			if many > limit*few {
				t.Errorf("%s: %d steps for %d %s, %d for %d times as many", name, few, size, of, many, factor)
			}
		}
	}
	// Jobs that are missing cost nothing beyond those that one plan creates.
	full, fuller := stepsOf(t, binary, fmt.Sprintf("created/1/%d", maxChanges+1)), stepsOf(t, binary, "created/1/1000000")
	t.Logf("%d steps for %d missing Jobs, %d for a million", full, maxChanges+1, fuller)
	if fuller > full {
		t.Errorf("%d steps for %d missing Jobs, %d for a million", full, maxChanges+1, fuller)
	}
}

// stepsOf returns the number of statements of this package that one decision runs.
func stepsOf(t *testing.T, binary, what string) (steps int) {
	t.Helper()
	profile := filepath.Join(t.TempDir(), "profile")
	command := exec.Command(binary, "-test.run=^TestDecideOnce$", "-test.coverprofile="+profile)
	command.Env = append(os.Environ(), stepsVariable+"="+what)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", what, err, out)
	}
	file, err := os.Open(profile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Scan() // the mode
	for lines.Scan() {
		var statements, count int
		_, counts, _ := strings.Cut(lines.Text(), " ")
		if _, err := fmt.Sscanf(counts, "%d %d", &statements, &count); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		steps += statements * count
	}
	if steps == 0 {
		t.Fatalf("%s: no steps were counted", what)
	}
	return steps
}
