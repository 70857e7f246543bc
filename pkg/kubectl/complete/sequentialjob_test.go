// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package complete

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

func TestValuesOfSequences(t *testing.T) {
	sj := builders.SequentialJob("etl", builders.WithContainers("extract", "transform", "load"), builders.Started(batchv1alpha1.StepSucceeded),
		builders.Started(batchv1alpha1.StepRunning, func(s *batchv1alpha1.SequentialJobStepStatus) { s.Attempts = 3 }))
	c := &cli.Clients{Namespace: builders.Namespace, JobSets: fake.NewClientset(sj)}
	for flag, tc := range map[string]struct {
		step string
		want []string
	}{
		StepFlag:    {want: []string{"extract", "transform", "load"}},
		"from-step": {want: []string{"extract", "transform"}},
		"attempt":   {want: []string{"3", "2", "1"}},
	} {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.String(StepFlag, tc.step, "")
		got, err := SequentialJob[flag](t.Context(), c, "etl", flags)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("--%s (-want +got):\n%s", flag, diff)
		}
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.String(StepFlag, "extract", "")
	if got, err := SequentialJob["attempt"](t.Context(), c, "etl", flags); err != nil || len(got) != 1 {
		t.Errorf("attempts of the step of the flag: %v, error %v", got, err)
	}
}
