// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package complete

import (
	"context"
	"slices"
	"strconv"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// ReplicatedJobFlag is the flag that narrows the Jobs and containers of a set.
const ReplicatedJobFlag = "replicated-job"

// JobSet are the Values of JobSets.
var JobSet = Values{
	ReplicatedJobFlag: ofSet(replicatedJobs), "job-index": ofSet(jobIndices), "container": ofSet(containers), "attempt": ofSet(attempts),
}

func ofSet(values func(*jobsetv1alpha2.JobSet, *pflag.FlagSet) []string) func(context.Context, *cli.Clients, string,
	*pflag.FlagSet) ([]string, error) {
	return func(ctx context.Context, c *cli.Clients, name string, flags *pflag.FlagSet) ([]string, error) {
		js, err := c.JobSets.JobsetV1alpha2().JobSets(c.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return values(js, flags), nil
	}
}

func replicatedJobs(js *jobsetv1alpha2.JobSet, _ *pflag.FlagSet) (names []string) {
	for i := range js.Spec.ReplicatedJobs {
		names = append(names, js.Spec.ReplicatedJobs[i].Name)
	}
	return names
}

// jobIndices are the indices of the replicatedJob that the flag names, or of the only one that the set has.
func jobIndices(js *jobsetv1alpha2.JobSet, flags *pflag.FlagSet) (indices []string) {
	chosen := chosen(js, flags)
	if len(chosen) != 1 {
		return nil
	}
	for index := range int(helper.Replicas(&chosen[0])) {
		indices = append(indices, strconv.Itoa(index))
	}
	return indices
}

// containers are the containers of the replicatedJob that the flag names, or of all, in the order in which they start.
func containers(js *jobsetv1alpha2.JobSet, flags *pflag.FlagSet) []string {
	var pods []*corev1.PodSpec
	for _, rj := range chosen(js, flags) {
		pods = append(pods, &rj.Template.Spec.Template.Spec)
	}
	return containerNames(pods...)
}

// containerNames are the names of the containers of pods, in the order in which they start.
func containerNames(pods ...*corev1.PodSpec) (names []string) {
	for _, pod := range pods {
		for _, list := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
			for i := range list {
				if !slices.Contains(names, list[i].Name) {
					names = append(names, list[i].Name)
				}
			}
		}
	}
	return names
}

// chosen returns the replicatedJobs that the flag leaves.
func chosen(js *jobsetv1alpha2.JobSet, flags *pflag.FlagSet) []jobsetv1alpha2.ReplicatedJob {
	flag := flags.Lookup(ReplicatedJobFlag)
	if flag == nil || flag.Value.String() == "" {
		return js.Spec.ReplicatedJobs
	}
	return slices.DeleteFunc(slices.Clone(js.Spec.ReplicatedJobs),
		func(rj jobsetv1alpha2.ReplicatedJob) bool { return rj.Name != flag.Value.String() })
}

// attempts are the attempts on record, the newest first.
func attempts(js *jobsetv1alpha2.JobSet, _ *pflag.FlagSet) (numbers []string) {
	for _, attempt := range slices.Backward(js.Status.Attempts) {
		numbers = append(numbers, strconv.Itoa(int(attempt.Number)))
	}
	return numbers
}
