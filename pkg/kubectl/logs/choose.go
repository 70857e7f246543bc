// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
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
func (o *options) choose(s *Source) (*choice, error) {
	c := &choice{}
	pods := s.pods
	past, err := o.prepare(s)
	if err != nil {
		return nil, err
	}
	var attempt *record
	if o.attempt > 0 {
		if attempt, err = past.find(s, o.attempt); err != nil {
			return nil, err
		}
		pods = attempt.pods(pods)
	}
	if o.firstFailed {
		o.chooseFirstFailed(c, s, past, attempt, pods)
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
	o.explain(c, s, attempt, pods, silent)
	return c, nil
}

// prepare checks the selection and completes it. Following goes on with the steps after the chosen one, unless the user names one.
func (o *options) prepare(s *Source) (records, error) {
	named := o.step != ""
	past, err := s.prepare(&o.selection)
	if o.follow && !named {
		o.step = ""
	}
	return past, err
}

// chooseFirstFailed chooses the container that failed first. If its pod is gone, the recorded cause is shown instead.
func (o *options) chooseFirstFailed(c *choice, s *Source, past records, attempt *record, pods []*corev1.Pod) {
	if attempt == nil {
		attempt = past.newestCause()
	}
	if attempt != nil && attempt.cause != nil {
		cause := attempt.cause
		i := slices.IndexFunc(pods, func(pod *corev1.Pod) bool { return pod.Name == cause.Pod && !replaced(pod, cause) })
		if i >= 0 {
			c.note("first cause of the end of %s: %s", attempt.title, causeOf(cause))
			o.add(c, pods[i], cause.Container)
			return
		}
		c.gone(attempt)
	}
	pod, container := failedFirst(slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool {
		return !o.inStep(pod) ||
			!o.inReplica(pod)
	}))
	if pod == nil {
		c.note("no failed pod of %s exists", s.title())
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
func (c *choice) gone(a *record) {
	cause := a.cause
	what := "job " + cause.Job
	if cause.Pod != "" {
		what = "pod " + cause.Pod
	}
	c.note("%s, which ended %s, is gone with its log; the recorded cause is %s", what, a.title, causeOf(cause))
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
func (o *options) explain(c *choice, s *Source, attempt *record, pods, silent []*corev1.Pod) {
	if len(pods) == 0 {
		o.explainNoPods(c, s, attempt)
		return
	}
	if len(silent) > 0 {
		o.explainSilent(c, len(pods), silent)
	}
	if o.container == "" && !o.allContainers && len(pods[0].Spec.Containers) > 1 {
		c.note("showing container %s of %s; choose another with -c, or all with --all-containers", defaultContainer(pods[0]), containers(pods[0]))
	}
}

func (o *options) explainNoPods(c *choice, s *Source, attempt *record) {
	switch {
	case attempt != nil:
		c.note("no pod of %s of %s exists any more", attempt.title, s.title())
		if attempt.cause != nil {
			c.gone(attempt)
		}
	case o.follow:
		c.note("no such pod of %s exists yet; waiting for them", s.title())
	default:
		c.note("no such pod of %s%s exists (the %s is %s); run `kubectl jobset why %s` for the cause", o.stepWords(), s.title(), s.noun,
			strings.ToLower(s.state), s.ref)
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
