// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/scenario"
)

func TestSizesComeFromThePresetAndTheFlags(t *testing.T) {
	smoke, full := scenario.Smoke(), scenario.Full()
	smoke.Jobs, smoke.Lists = 7, []int{3, 9}
	beside := scenario.FullBesideUpstream()
	beside.ManySets = 50
	for name, tc := range map[string]struct {
		args []string
		want scenario.Sizes
		// runs are the runs of scenarios alone, and the rounds of those that take turns.
		runs [2]int
	}{
		"without flags everything is full":     {nil, full, [2]int{3, 5}},
		"flags win over the preset":            {[]string{"--preset=smoke", "--jobs=7", "--list-sets=3,9", "--runs=2"}, smoke, [2]int{2, 2}},
		"the preset is for all that is absent": {[]string{"--preset=smoke"}, scenario.Smoke(), [2]int{1, 1}},
		"beside upstream":                      {[]string{"--cluster-dir=a", "--upstream-dir=b", "--many-sets=50"}, beside, [2]int{3, 5}},
		"rounds do not follow the runs":        {[]string{"--runs=2", "--rounds=7"}, full, [2]int{2, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parse(tc.args)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, o.sizes); d != "" {
				t.Errorf("sizes (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.runs, [2]int{o.runs, o.rounds}); d != "" {
				t.Errorf("runs (-want +got):\n%s", d)
			}
		})
	}
}

func TestWrongFlagsAreNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"a scenario that does not exist":  {[]string{"--scenarios=floor,huge"}, `--scenarios: "huge" is not known`},
		"no scenario":                     {[]string{"--scenarios="}, "--scenarios: must name"},
		"a preset that does not exist":    {[]string{"--preset=tiny"}, `--preset: "tiny"`},
		"no Jobs":                         {[]string{"--jobs=0"}, "--jobs: must be 1 or more"},
		"no runs":                         {[]string{"--runs=0"}, "--runs: must be 1 or more"},
		"no rounds":                       {[]string{"--rounds=0"}, "--rounds: must be 1 or more"},
		"a variant without a name":        {[]string{"--variant=a.b/c=d"}, `--variant: "a.b/c=d" must begin with a name`},
		"a variant without annotations":   {[]string{"--variant=compact"}, `--variant: "compact" must have annotations in the form KEY=VALUE, not ""`},
		"two variants of one name":        {[]string{"--variant=a:b=c", "--variant=a:d=e"}, `--variant: the name "a" must not be given twice`},
		"more pods than a rack has nodes": {[]string{"--place-pods=17"}, "--place-pods: must be at most --place-rack-nodes, which is 16, not 17"},
		"no rack that is full":            {[]string{"--place-nodes=15"}, "--place-nodes: must be at least --place-rack-nodes, which is 16, not 15"},
		"sizes that shrink":               {[]string{"--growth-jobs=10,5"}, "--growth-jobs: must ascend"},
		"a set that is too large":         {[]string{"--growth-jobs=10,100001"}, "--growth-jobs: must be at most 100000, the most Jobs of a set, not 100001"},
		"too many suspended Jobs":         {[]string{"--suspended-jobs=100001"}, "--suspended-jobs: must be at most 100000, the most Jobs of a set, not 100001"},
		"too many sets in a second":       {[]string{"--rate=1001"}, "--rate: must be at most 1000, not 1001"},
		"too many seconds":                {[]string{"--rate-seconds=3601"}, "--rate-seconds: must be at most 3600, not 3601"},
		"too many Jobs beside them":       {[]string{"--rate-jobs=100001"}, "--rate-jobs: must be at most 100000, the most Jobs of a set, not 100001"},
		"upstream without our cluster":    {[]string{"--upstream-dir=b"}, "--upstream-dir: must be given with --cluster-dir"},
		"upstream beside another cluster": {[]string{"--upstream-dir=b", "--kubeconfig=file"}, "--upstream-dir: must not be given with --kubeconfig"},
		"lists that shrink":               {[]string{"--list-sets=10,5"}, "--list-sets: must ascend"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(tc.args)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, must contain %q", err, tc.want)
			}
		})
	}
}

func TestVariantsHaveAnnotations(t *testing.T) {
	o, err := parse([]string{"--variant=both:example.com/a=b,c=d=e", "--variant=none:x="})
	if err != nil {
		t.Fatal(err)
	}
	want := []scenario.Variant{{Name: "both", Annotations: map[string]string{"example.com/a": "b", "c": "d=e"}}, {Name: "none", Annotations: map[string]string{"x": ""}}}
	if d := cmp.Diff(want, o.variants); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestComparisonIsOfScenariosThatTakeTurns(t *testing.T) {
	for dir, want := range map[string][]string{
		"":         {"floor", "labeled-jobs", "big", "run"},
		"upstream": {"floor", "labeled-jobs", "big", "large", "run", "write", "list", "leaderworkersets", "place", "many"},
	} {
		if d := cmp.Diff(want, (&options{upstreamDir: dir}).compared()); d != "" {
			t.Errorf("--upstream-dir=%s (-want +got):\n%s", dir, d)
		}
	}
}

func TestResultsAreSavedBeforeAFailure(t *testing.T) {
	failure := errors.New("no answer within 10m0s")
	partly := &report.Scenario{Name: "growth"}
	partly.Phase("400: start").Add("wall", report.UnitSeconds, 8)
	for name, tc := range map[string]struct {
		result  *report.Scenario
		failure error
		want    string
	}{
		"all was measured":     {partly, nil, "growth"},
		"a part was measured":  {partly, failure, "growth"},
		"nothing was measured": {&report.Scenario{Name: "growth"}, failure, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := save(dir, tc.result, tc.failure); !errors.Is(err, tc.failure) {
				t.Errorf("error %v, want %v", err, tc.failure)
			}
			saved, err := report.Load(dir)
			if tc.want == "" {
				if err == nil {
					t.Errorf("%d results were saved", len(saved))
				}
				return
			}
			if err != nil || len(saved) != 1 || saved[0].Name != tc.want {
				t.Errorf("saved %v, error %v", saved, err)
			}
		})
	}
}

func parse(args []string) (*options, error) {
	o, flags := newOptions(), pflag.NewFlagSet("run", pflag.ContinueOnError)
	o.addFlags(flags)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	return o, o.complete(flags)
}
