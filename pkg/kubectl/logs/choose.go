// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// choice is what will be shown, and what there is to say about it.
type choice struct {
	streams []stream
	notes   []string
}

func (c *choice) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// choose finds the containers that the flags ask for.
func (o *options) choose(set *snapshot.Set) (*choice, error) {
	c := &choice{}
	js, pods := set.JobSet, set.Pods
	if err := o.selection.validate(js); err != nil {
		return nil, err
	}
	var attempt *jobsetv1alpha2.Attempt
	if o.attempt > 0 {
		var err error
		if attempt, err = findAttempt(js, o.attempt); err != nil {
			return nil, err
		}
		pods = inAttempt(js, attempt, pods)
	}
	if o.firstFailed {
		o.chooseFirstFailed(c, js, attempt, pods)
		return c, nil
	}
	pods = slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return !o.wants(pod) })
	if err := o.checkContainer(pods); err != nil {
		return nil, err
	}
	var silent []*corev1.Pod
	for _, pod := range pods {
		streams := o.streams(pod)
		if len(streams) == 0 && slices.Contains(containerNames(pod), o.container) == (o.container != "") {
			silent = append(silent, pod)
		}
		c.streams = append(c.streams, streams...)
	}
	distinguish(c.streams)
	o.explain(c, set, attempt, pods, silent)
	return c, nil
}

// chooseFirstFailed chooses the container that failed first. If its pod is gone, the recorded cause is shown instead.
func (o *options) chooseFirstFailed(c *choice, js *jobsetv1alpha2.JobSet, attempt *jobsetv1alpha2.Attempt, pods []*corev1.Pod) {
	if attempt == nil {
		attempt = newestCause(js)
	}
	if attempt != nil && attempt.FirstCause != nil {
		cause := attempt.FirstCause
		i := slices.IndexFunc(pods, func(pod *corev1.Pod) bool { return pod.Name == cause.Pod })
		if i >= 0 {
			c.note("first cause of the end of attempt %d: %s", attempt.Number, causeOf(cause))
			o.add(c, pods[i], cause.Container)
			return
		}
		c.gone(attempt)
	}
	pod, container := failedFirst(pods)
	if pod == nil {
		c.note("no failed pod of jobset %s exists", js.Name)
		return
	}
	c.note("the first failed pod that exists is %s on node %s", pod.Name, pod.Spec.NodeName)
	o.add(c, pod, container)
}

// add takes one pod: the container that the user names, or else the one that failed.
func (o *options) add(c *choice, pod *corev1.Pod, failed string) {
	want := o.selection
	want.replicatedJob, want.jobIndex = "", -1
	if want.container == "" {
		want.container = failed
	}
	streams := want.streams(pod)
	if len(streams) == 0 {
		c.note("pod %s has no such log; its containers are %s", pod.Name, strings.Join(containerNames(pod), ", "))
	}
	c.streams = append(c.streams, streams...)
}

// gone says what is on record of an attempt whose failed pod is not there any more.
func (c *choice) gone(a *jobsetv1alpha2.Attempt) {
	cause := a.FirstCause
	what := "job " + cause.Job
	if cause.Pod != "" {
		what = "pod " + cause.Pod
	}
	c.note("%s, which ended attempt %d, is gone with its log; the recorded cause is %s", what, a.Number, causeOf(cause))
	if cause.Message != "" {
		for _, line := range strings.Split(strings.TrimSpace(cause.Message), "\n") {
			c.note("%s", line)
		}
	}
}

// causeOf says how a container failed, in a few words.
func causeOf(cause *jobsetv1alpha2.FailureCause) string {
	var how []string
	for _, part := range []struct{ word, value string }{{"container", cause.Container}, {"node", cause.Node}, {"", cause.Reason}} {
		if part.value != "" {
			how = append(how, strings.TrimSpace(part.word+" "+part.value))
		}
	}
	if cause.ExitCode != nil {
		how = append(how, fmt.Sprintf("exit code %d", *cause.ExitCode))
	}
	if cause.Signal != nil {
		how = append(how, fmt.Sprintf("signal %d", *cause.Signal))
	}
	return strings.Join(how, ", ")
}

// checkContainer refuses the name of a container that no pod has.
func (o *options) checkContainer(pods []*corev1.Pod) error {
	if o.container == "" || len(pods) == 0 {
		return nil
	}
	var names []string
	for _, pod := range pods {
		for _, name := range containerNames(pod) {
			if name == o.container {
				return nil
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return fmt.Errorf("--container: must be one of %s, not %q", strings.Join(names, ", "), o.container)
}

// podsNamed is how many pods are named in a note.
const podsNamed = 3

// explain adds notes on what is not shown, and why.
func (o *options) explain(c *choice, set *snapshot.Set, attempt *jobsetv1alpha2.Attempt, pods, silent []*corev1.Pod) {
	if len(pods) == 0 {
		o.explainNoPods(c, set.JobSet, attempt)
		return
	}
	if len(silent) > 0 {
		o.explainSilent(c, len(pods), silent)
	}
	if o.container == "" && !o.allContainers && len(pods[0].Spec.Containers) > 1 {
		c.note("showing container %s of %s; choose another with -c, or all with --all-containers", defaultContainer(pods[0]), containers(pods[0]))
	}
}

func (o *options) explainNoPods(c *choice, js *jobsetv1alpha2.JobSet, attempt *jobsetv1alpha2.Attempt) {
	switch {
	case attempt != nil:
		c.note("no pod of attempt %d of jobset %s exists any more", attempt.Number, js.Name)
		if attempt.FirstCause != nil {
			c.gone(attempt)
		}
	case o.follow:
		c.note("no such pod of jobset %s exists yet; waiting for them", js.Name)
	default:
		c.note("no such pod of jobset %s exists (the set is %s); run `kubectl jobset why %s` for the cause", js.Name, strings.ToLower(helper.Phase(js)), js.Name)
	}
}

// explainSilent names pods that have no log.
func (o *options) explainSilent(c *choice, pods int, silent []*corev1.Pod) {
	var names []string
	for _, pod := range silent[:min(podsNamed, len(silent))] {
		names = append(names, pod.Name)
	}
	if len(silent) > podsNamed {
		names = append(names, "and others")
	}
	what := "not started yet"
	if o.previous {
		what = "no earlier run of the container"
	}
	c.note("%s (%d of %s): %s", what, len(silent), cli.Count(pods, "pod"), strings.Join(names, ", "))
}

func containers(pod *corev1.Pod) string {
	var names []string
	for i := range pod.Spec.Containers {
		names = append(names, pod.Spec.Containers[i].Name)
	}
	return strings.Join(names, ", ")
}
