// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"
	"time"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// TestWhichPodsAreLabeled has the rows of docs/reference/batch.md#size and #members.
func TestWhichPodsAreLabeled(t *testing.T) {
	set := Owner{Kind: KindJobSet, Name: "set", UID: "set"}
	other := Owner{Name: "other", UID: "other"}
	old, next := Owner{Kind: KindReplicaSet, Name: "old", UID: "old"}, Owner{Kind: KindReplicaSet, Name: "next", UID: "next"}
	deployment := map[Owner]OwnerSize{old: {Root: "d", Pods: 2}, next: {Root: "d", Pods: 2}}
	gone := map[Owner]OwnerSize{job: {Unknown: true}}
	for name, tc := range map[string]struct {
		o    Observed
		want []string
	}{
		"all of the pods that the group wants run": {observed(pods(2)...).grouped(group(2)), []string{"p00", "p01"}},
		"one of them does not exist yet":           {observed(pods(2)...).grouped(group(3)), nil},
		"more of them run than are needed":         {observed(pods(3)...).grouped(group(2)), []string{"p00", "p01", "p02"}},
		"one more waits than are needed": {
			observed(pod("a"), pod("b"), pod("c", in(Pending))).grouped(group(2)), []string{"a", "b"}},
		"minMember comes before what pods state":  {observed(pods(2, states("3"))...).grouped(group(2)), []string{"p00", "p01"}},
		"pods state the size, and all run":        {observed(pods(2, states("2"))...), []string{"p00", "p01"}},
		"pods state the size, and one is missing": {observed(pods(2, states("3"))...), nil},
		"one pod states the size":                 {observed(pod("a"), pod("b", states("3"))), nil},
		"one pod states it as an annotation":      {observed(pod("a"), pod("b", func(p *Pod) { p.SizeAnnotation = "3" })), nil},
		"the largest size counts":                 {observed(pod("a", states("3")), pod("b", states("2"))), nil},
		"what pods state comes before owners": {
			observed(pods(2, states("2"), ownedBy(job))...).owned(jobOf(5)), []string{"p00", "p01"}},
		"a malformed size leaves it to the owners": {observed(pods(2, states("all"), ownedBy(job))...).owned(jobOf(3)), nil},
		"a size of 0 is malformed":                 {observed(pods(2, states("0"))...), []string{"p00", "p01"}},
		"a size that is too large is malformed":    {observed(pods(2, states("100001"))...), []string{"p00", "p01"}},
		"the Job has as many":                      {observed(pods(2, ownedBy(job))...).owned(jobOf(2)), []string{"p00", "p01"}},
		"the Job is going to have more":            {observed(pods(2, ownedBy(job))...).owned(jobOf(3)), nil},
		"owners that were not read":                {observed(pods(2, ownedBy(job))...), nil},
		"owners that are gone":                     {observed(pods(2, ownedBy(job))...).owned(gone), []string{"p00", "p01"}},
		"the sizes of owners are summed up": {
			observed(pod("a", ownedBy(job)), pod("b", ownedBy(set))).owned(map[Owner]OwnerSize{job: {Root: "job", Pods: 1}, set: {Root: "set", Pods: 2}}), nil},
		"a Deployment counts once": {observed(pod("a", ownedBy(old)), pod("b", ownedBy(next))).owned(deployment), []string{"a", "b"}},
		"a bare pod beside those of a Job": {
			observed(pod("a", ownedBy(job)), pod("b", in(Pending))).owned(jobOf(1)), nil},
		"nothing states the size":                 {observed(pods(2)...), []string{"p00", "p01"}},
		"one of those that exist waits":           {observed(pod("a"), pod("b", in(Pending))), nil},
		"one has succeeded":                       {observed(pod("a"), pod("b", in(Succeeded))), []string{"a", "b"}},
		"one has failed, and nothing replaces it": {observed(pod("a"), pod("b", ended(5))), nil},
		"one of an owner has failed, and nothing replaced it yet": {
			observed(pod("a", ownedBy(other), created(60)), pod("b", ownedBy(other), created(60), ended(5))), nil},
		"one of an owner has failed and was replaced": {
			observed(pod("a", ownedBy(other)), pod("b", ownedBy(other), ended(5)), pod("c", ownedBy(other), created(4))), []string{"a", "c"}},
		"two have failed, and one was replaced": {
			observed(pod("a", ownedBy(other), ended(6)), pod("b", ownedBy(other), ended(5)), pod("c", ownedBy(other), created(4))), nil},
		"one of a Job has failed, and the Job replaces it": {
			observed(pod("a", ownedBy(job)), pod("b", ownedBy(job), ended(5))).owned(jobOf(2)), nil},
		"one of a Job was replaced": {
			observed(pod("a", ownedBy(job)), pod("b", ownedBy(job), ended(5)), pod("c", ownedBy(job))).owned(jobOf(2)), []string{"a", "c"}},
		"one that runs is being deleted":  {observed(pod("a"), pod("b", terminating)).grouped(group(2)), nil},
		"one that waits is being deleted": {observed(pod("a"), pod("b", in(Pending), terminating)), []string{"a"}},
		"some are labeled already":        {observed(pod("a", labeled), pod("b")), []string{"b"}},
		"a replacement waits":             {observed(pod("a", labeled), pod("b", in(Pending), ownedBy(job))).owned(jobOf(1)), nil},
		"a replacement runs": {
			observed(pod("a", labeled, ownedBy(job)), pod("b", ownedBy(job))).owned(jobOf(2)), []string{"b"}},
		"a label was removed while the group is not ready any more": {
			observed(pod("a", labeled, ownedBy(job)), pod("b", ownedBy(job))).owned(jobOf(3)), nil},
		"no pods": {observed().grouped(group(1)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, ref := range Decide(tc.o).Label {
				got = append(got, ref.Name)
			}
			diff(t, "pods to label", tc.want, got)
			slices.Reverse(tc.o.Pods)
			if again := Decide(tc.o); len(again.Label) != len(got) {
				t.Errorf("in another order %v", again.Label)
			}
		})
	}
}

// TestStabilizationWindow is about groups whose size nothing states.
func TestStabilizationWindow(t *testing.T) {
	o := observed(pods(2)...)
	o.LastNew = now.Add(-time.Second)
	p := Decide(o)
	diff(t, "ready after one second", false, p.Ready)
	diff(t, "look again", time.Second, p.LookAgain)
	o.LastNew = now.Add(-StabilizationWindow)
	diff(t, "ready after two seconds", true, Decide(o).Ready)
	o = observed(pods(2, ownedBy(job))...).owned(jobOf(2))
	o.LastNew = now
	diff(t, "a group of known size is ready at once", true, Decide(o).Ready)
	o.Pods = append(o.Pods, pod("bare"))
	diff(t, "a bare pod makes it wait", false, Decide(o).Ready)
}

func TestReadyWhenReady(t *testing.T) {
	g := group(2)
	g.Spec.ReadyWhen = batchv1alpha1.ReadyWhenReady
	diff(t, "one of two is ready", false, Decide(observed(pod("a", ready), pod("b")).grouped(g)).Ready)
	diff(t, "both are", true, Decide(observed(pod("a", ready), pod("b", ready)).grouped(g)).Ready)
	diff(t, "one has succeeded", true, Decide(observed(pod("a", ready), pod("b", in(Succeeded))).grouped(g)).Ready)
}

// TestNeeds is about when owners are read.
func TestNeeds(t *testing.T) {
	second := Owner{Kind: KindJob, Name: "second", UID: "second"}
	for name, tc := range map[string]struct {
		o    Observed
		want []Owner
	}{
		"none runs":                               {observed(pods(2, ownedBy(job), in(Pending))...), nil},
		"one runs":                                {observed(pod("a", ownedBy(job)), pod("b", ownedBy(job), in(Pending))), []Owner{job}},
		"fewer run than there are owners":         {observed(pod("a", ownedBy(job)), pod("b", ownedBy(second), in(Pending))), nil},
		"as many run as there are owners":         {observed(pod("a", ownedBy(job)), pod("b", ownedBy(second))), []Owner{job, second}},
		"all are labeled":                         {observed(pods(2, ownedBy(job), labeled)...), nil},
		"all are labeled, but there is an object": {observed(pods(2, ownedBy(job), labeled)...).grouped(group(0)), []Owner{job}},
		"minMember is known":                      {observed(pods(2, ownedBy(job))...).grouped(group(2)), nil},
		"pods state the size":                     {observed(pods(2, ownedBy(job), states("2"))...), nil},
		"pods of another kind of owner":           {observed(pods(2, ownedBy(Owner{UID: "x"}))...), nil},
		"bare pods":                               {observed(pods(2)...), nil},
	} {
		t.Run(name, func(t *testing.T) { diff(t, "owners", tc.want, Needs(tc.o)) })
	}
}

func TestSizeProblems(t *testing.T) {
	const malformed = "batch.jobset-apiserver.io/pod-group-size must be a number from 1 to 100000 on all pods of the group"
	const differs = "batch.jobset-apiserver.io/pod-group-size must be the same number on all pods of the group; the largest, 3, counts"
	for name, tc := range map[string]struct {
		o         Observed
		want, pod string
		size      int32
		source    Source
	}{
		"none":                         {observed(pods(2, states("2"))...), "", "", 2, FromPods},
		"malformed":                    {observed(pod("b", states("x")), pod("a", states("many"))), malformed, "a", 2, FromExisting},
		"malformed beside a valid one": {observed(pod("a", states("3")), pod("b", states("-1"))), malformed, "b", 3, FromPods},
		"contradictory":                {observed(pod("a", states("3")), pod("c", states("1")), pod("b", states("2"))), differs, "b", 3, FromPods},
		"label and annotation": {
			observed(pod("a", states("3"), func(p *Pod) { p.SizeAnnotation = "2" })), differs, "a", 3, FromPods},
		"on a pod that is being deleted": {observed(pod("a", states("x"), terminating), pod("b", states("2"))), "", "", 2, FromPods},
		"minMember counts anyway":        {observed(pods(1, states("x"))...).grouped(group(1)), "", "", 1, FromGroup},
	} {
		t.Run(name, func(t *testing.T) {
			p := Decide(tc.o)
			diff(t, "problem", tc.want, p.SizeProblem.Message)
			diff(t, "pod", tc.pod, p.SizeProblem.Pod.Name)
			diff(t, "size", tc.size, p.Size)
			diff(t, "source", tc.source, p.Source)
		})
	}
}

// TestOwnersAreAskedAgain is about a group all of whose pods run, and whose owner says that there should be more.
func TestOwnersAreAskedAgain(t *testing.T) {
	diff(t, "all pods run", ownersEvery, Decide(observed(pods(2, ownedBy(job))...).owned(jobOf(3))).LookAgain)
	diff(t, "one waits", time.Duration(0), Decide(observed(pod("a", ownedBy(job)), pod("b", ownedBy(job), in(Pending))).owned(jobOf(3))).LookAgain)
}
