// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package complete

import (
	"context"
	"slices"
	"strconv"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// StepFlag is the flag that names a step of a sequence.
const StepFlag = "step"

// SequentialJob are the Values of SequentialJobs.
var SequentialJob = Values{StepFlag: ofSequence(stepNames), "from-step": ofSequence(stepsToRetry), "attempt": ofSequence(stepAttempts)}

func ofSequence(values func(*batchv1alpha1.SequentialJob, *pflag.FlagSet) []string) func(context.Context, *cli.Clients, string,
	*pflag.FlagSet) ([]string, error) {
	return func(ctx context.Context, c *cli.Clients, name string, flags *pflag.FlagSet) ([]string, error) {
		sj, err := c.JobSets.BatchV1alpha1().SequentialJobs(c.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return values(sj, flags), nil
	}
}

func stepNames(sj *batchv1alpha1.SequentialJob, _ *pflag.FlagSet) (names []string) {
	for _, step := range helper.Steps(&sj.Spec) {
		names = append(names, step.Name)
	}
	return names
}

// stepsToRetry are the steps up to the current one: a retry cannot begin with a later one.
func stepsToRetry(sj *batchv1alpha1.SequentialJob, flags *pflag.FlagSet) []string {
	names := stepNames(sj, flags)
	return names[:min(len(names), helper.CurrentIndex(&sj.Status)+1)]
}

// stepAttempts are the attempts of the step that the flag names, or of the current one, the newest first.
func stepAttempts(sj *batchv1alpha1.SequentialJob, flags *pflag.FlagSet) (numbers []string) {
	step := helper.CurrentStep(&sj.Status)
	if flag := flags.Lookup(StepFlag); flag != nil && flag.Value.String() != "" {
		at := slices.IndexFunc(sj.Status.Steps, func(s batchv1alpha1.SequentialJobStepStatus) bool { return s.Name == flag.Value.String() })
		if at < 0 {
			return nil
		}
		step = &sj.Status.Steps[at]
	}
	if step == nil {
		return nil
	}
	for n := step.Attempts; n > 0; n-- {
		numbers = append(numbers, strconv.Itoa(int(n)))
	}
	return numbers
}
