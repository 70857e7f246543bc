// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"bytes"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// runAll is run without a kind.
func runAll(t *testing.T, s *server, args ...string) outcome {
	t.Helper()
	f, out, errOut := s.factory()
	cmd := NewCommand(f)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetOut(&bytes.Buffer{})
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(append([]string{}, args...))
	err := cmd.ExecuteContext(t.Context())
	got := outcome{Out: out.String(), ErrOut: errOut.String(), Requests: s.got}
	if err != nil {
		got.Err = err.Error()
	}
	return got
}

func objects(list any) answer { return answer{http.StatusOK, []any{list}} }

// otherKinds are lists of one object of each kind but JobSets.
func otherKinds() (sequences, groups, roles answer) {
	sj := builders.SequentialJob("etl", builders.WithContainers("extract", "load"), builders.Started(batchv1alpha1.StepSucceeded), builders.Started(batchv1alpha1.StepRunning))
	sj.Namespace, sj.CreationTimestamp = "ns", created
	set := builders.LeaderWorkerSet("vllm", 3, 2)
	set.Namespace, set.CreationTimestamp, set.Status.ObservedGeneration, set.Status.ReadyReplicas = "ns", created, 1, 2
	set.Status.Conditions = []metav1.Condition{{Type: "Progressing", Status: metav1.ConditionTrue, Reason: "GroupsProgressing"}}
	ds := disaggregatedsetv1.DisaggregatedSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pd", CreationTimestamp: created}}
	ds.Spec.Roles = []disaggregatedsetv1.DisaggregatedRoleSpec{{Name: "prefill"}, {Name: "decode"}}
	for i, groups := range []int32{2, 4} {
		ds.Spec.Roles[i].Spec.Replicas = &groups
	}
	ds.Status.RoleStatuses = []disaggregatedsetv1.RoleStatus{{Name: "prefill", Replicas: 2, ReadyReplicas: 2}, {Name: "decode", Replicas: 4, ReadyReplicas: 4}}
	ds.Status.Conditions = []metav1.Condition{{Type: disaggregatedsetv1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: disaggregatedsetv1.ReasonAllRolesReady}}
	return objects(batchv1alpha1.SequentialJobList{Items: []batchv1alpha1.SequentialJob{*sj}}),
		objects(leaderworkersetv1.LeaderWorkerSetList{Items: []leaderworkersetv1.LeaderWorkerSet{*set}}),
		objects(disaggregatedsetv1.DisaggregatedSetList{Items: []disaggregatedsetv1.DisaggregatedSet{ds}})
}

func TestListOfAllKinds(t *testing.T) {
	const (
		sequencesPath = "objects /apis/batch.jobset-apiserver.io/v1alpha1/namespaces/ns/sequentialjobs?limit=50"
		groupsPath    = "objects /apis/leaderworkerset.x-k8s.io/v1/namespaces/ns/leaderworkersets?limit=50"
		rolesPath     = "objects /apis/disaggregatedset.x-k8s.io/v1/namespaces/ns/disaggregatedsets?limit=50"
	)
	sequences, groups, roles := otherKinds()
	refused := failure(apierrors.NewForbidden(schema.GroupResource{Group: batchv1alpha1.GroupName, Resource: "sequentialjobs"}, "", errors.New("no")))
	absent := failure(apierrors.NewGenericServerResponse(http.StatusNotFound, "list", schema.GroupResource{}, "", "", 0, true))
	sets := page("", set("train", "Running", "4/4", "1/3", inQueue("gpu")))
	for name, tc := range map[string]struct {
		args    []string
		answers []answer
		want    outcome
	}{
		"all kinds": {
			answers: []answer{sets, sequences, groups, roles},
			want: outcome{Requests: []string{firstPage, sequencesPath, groupsPath, rolesPath}, Out: `NAME      PHASE        READY  ATTEMPT  QUEUE  AGE  REASON
sqj/etl   Running      1/2                    90m
dset/pd   Available    6/6                    90m
js/train  Running      4/4    1/3      gpu    90m
lws/vllm  Progressing  2/3                    90m  GroupsProgressing
`},
		},
		"one kind": {args: []string{"lws"}, answers: []answer{groups}, want: outcome{Requests: []string{groupsPath}, Out: `NAME  PHASE        READY  ATTEMPT  QUEUE  AGE  REASON
vllm  Progressing  2/3                    90m  GroupsProgressing
`}},
		"a phase of some kinds": {args: []string{"--phase", "available"}, answers: []answer{sets, sequences, groups, roles}, want: outcome{
			Requests: []string{firstPage, sequencesPath, groupsPath, rolesPath}, Out: "NAME     PHASE      READY  ATTEMPT  QUEUE  AGE  REASON\ndset/pd  Available  6/6                    90m\n",
		}},
		"one kind may not be read, and others are not served": {answers: []answer{sets, refused, absent, absent}, want: outcome{
			Requests: []string{firstPage, sequencesPath, groupsPath, rolesPath},
			Out:      "NAME      PHASE    READY  ATTEMPT  QUEUE  AGE  REASON\njs/train  Running  4/4    1/3      gpu    90m\n",
			ErrOut:   "note: SequentialJobs are not listed: sequentialjobs.batch.jobset-apiserver.io is forbidden: no\n",
		}},
		"the kind that was asked for may not be read": {args: []string{"sqj"}, answers: []answer{refused}, want: outcome{
			Requests: []string{sequencesPath}, Err: "sequentialjobs.batch.jobset-apiserver.io is forbidden: no",
		}},
		"as data": {args: []string{"-o", "jsonpath={range .items[*]}{.kind}/{.name} {.ready}/{.wanted} {.jobsReady}\n{end}"}, answers: []answer{sets, sequences, groups, roles}, want: outcome{
			Requests: []string{firstPage, sequencesPath, groupsPath, rolesPath}, Out: "SequentialJob/etl 1/2 \nDisaggregatedSet/pd 6/6 \nJobSet/train 4/4 4\nLeaderWorkerSet/vllm 2/3 \n",
		}},
		"no object": {args: []string{"disaggregatedsets"}, answers: []answer{objects(disaggregatedsetv1.DisaggregatedSetList{})}, want: outcome{
			Requests: []string{rolesPath}, ErrOut: "No DisaggregatedSets found in namespace ns.\n",
		}},
		"two kinds": {args: []string{"sqj", "lws"}, want: outcome{Err: "KIND: must be one of js, sqj, lws, dset, or absent for all, not 2 (sqj, lws)"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, runAll(t, newServer(t, tc.answers...), tc.args...)); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnreadableObjectsAreNamed: what a list has of an object that the server cannot read has no state, and must not look like one that
// waits or runs.
func TestUnreadableObjectsAreNamed(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "bad", Annotations: map[string]string{unreadable.Annotation: "its bytes are damaged"}}
	for kind, row := range map[string]Row{
		"JobSet":           rowOf(&jobsetv1alpha2.JobSet{ObjectMeta: meta}),
		"SequentialJob":    rowOfSequence(&batchv1alpha1.SequentialJob{ObjectMeta: meta}),
		"LeaderWorkerSet":  rowOfLeaderWorkerSet(&leaderworkersetv1.LeaderWorkerSet{ObjectMeta: meta}),
		"DisaggregatedSet": rowOfRoles(&disaggregatedsetv1.DisaggregatedSet{ObjectMeta: meta}),
	} {
		if row.Kind != kind || row.Phase != "Unreadable" || row.Reason != "Unreadable" {
			t.Errorf("%s: %+v", kind, row)
		}
	}
}
