// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

// gatekeeper is an admission chain that keeps what it was asked about main resources, and answers as it is told.
type gatekeeper struct {
	admit, validate func(admission.Attributes) error
	asked           []string
	dryRuns         int
}

func (*gatekeeper) Handles(admission.Operation) bool { return true }

func (g *gatekeeper) Admit(_ context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return g.ask("mutate", g.admit, a, o)
}

func (g *gatekeeper) Validate(_ context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return g.ask("validate", g.validate, a, o)
}

func (g *gatekeeper) ask(phase string, answer func(admission.Attributes) error, a admission.Attributes, o admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" || a.GetOperation() != admission.Update {
		return nil
	}
	// What plugins do before they ask anybody.
	for _, obj := range []runtime.Object{a.GetObject(), a.GetOldObject()} {
		if _, err := admission.NewVersionedAttributes(a, a.GetKind(), o); err != nil || obj == nil {
			return fmt.Errorf("%T: %v", obj, err)
		}
	}
	g.asked = append(g.asked, fmt.Sprintf("%s %s %s %s %s/%s by %s %s", phase, a.GetOperation(), a.GetResource(), a.GetKind(), a.GetNamespace(), a.GetName(),
		a.GetUserInfo().GetName(), a.GetOperationOptions().GetObjectKind().GroupVersionKind().Kind))
	if a.IsDryRun() {
		g.dryRuns++
	}
	if answer == nil {
		return nil
	}
	return answer(a)
}

type noEvents struct{}

func (noEvents) Record(provider.Event) {}

// formerRevisions are what a rollback can return to.
type formerRevisions []appsv1.ControllerRevision

func (r formerRevisions) List(context.Context, string, string, string) ([]appsv1.ControllerRevision, error) {
	return r, nil
}

var (
	jobSetA = `{"metadata":{"name":"a"},"spec":{"replicatedJobs":[{"name":"w","template":{"spec":{"template":{"spec":
		{"restartPolicy":"Never","containers":[{"name":"c","image":"v2"}]}}}}}]}}`
	sequentialJobA = `{"metadata":{"name":"a"},"spec":{"template":{"spec":{"restartPolicy":"Never"}},"containers":[{"name":"c","image":"v2"}]}}`
	groupsA        = `{"metadata":{"name":"a"},"spec":{"replicas":2,"revisionHistoryLimit":2,"leaderWorkerTemplate":{"workerTemplate":{"spec":{"containers":[{"name":"c","image":"v2"}]}}}}}`
)

// actionCase is an action on an object of a kind.
type actionCase struct {
	path, object, action string
	change               func(runtime.Object)
	edits                bool
}

func suspended(obj runtime.Object) {
	switch o := obj.(type) {
	case *jobset.JobSet:
		o.Spec.Suspend = ptr.To(true)
	case *batch.SequentialJob:
		o.Spec.Suspend = ptr.To(true)
	case *leaderworkerset.LeaderWorkerSet:
		o.Spec.Paused = ptr.To(true)
	}
}

func failed(obj runtime.Object) {
	condition := []metav1.Condition{{Type: "Failed", Status: metav1.ConditionTrue, Reason: "BackoffLimitExceeded", LastTransitionTime: metav1.Now()}}
	switch o := obj.(type) {
	case *jobset.JobSet:
		o.Status.Conditions, o.Status.TerminalState = condition, "Failed"
	case *batch.SequentialJob:
		o.Status.Conditions = condition
		o.Status.Phase = "Failed"
	}
}

// stepRuns makes the step of a sequence the current one.
func stepRuns(obj runtime.Object) {
	sj := obj.(*batch.SequentialJob)
	sj.Status.Steps = []batch.SequentialJobStepStatus{{Name: "c", Kind: "Job", ChildName: "a-c", State: batch.StepRunning, Attempts: 1, ChildUID: "u"}}
	sj.Status.Progress.CurrentIndex = ptr.To[int32](0)
}

var actionCases = map[string]actionCase{
	"suspend a JobSet":            {jobsetsPath, jobSetA, "suspend", nil, true},
	"suspend a suspended JobSet":  {jobsetsPath, jobSetA, "suspend", suspended, false},
	"resume a JobSet":             {jobsetsPath, jobSetA, "resume", suspended, true},
	"resume a running JobSet":     {jobsetsPath, jobSetA, "resume", nil, false},
	"restart a JobSet":            {jobsetsPath, jobSetA, "restart", nil, false},
	"cancel a JobSet":             {jobsetsPath, jobSetA, "cancel", nil, false},
	"retry a JobSet":              {jobsetsPath, jobSetA, "retry", failed, false},
	"suspend a SequentialJob":     {sequentialJobsPath, sequentialJobA, "suspend", nil, true},
	"resume a SequentialJob":      {sequentialJobsPath, sequentialJobA, "resume", suspended, true},
	"restart a SequentialJob":     {sequentialJobsPath, sequentialJobA, "restart", stepRuns, false},
	"cancel a SequentialJob":      {sequentialJobsPath, sequentialJobA, "cancel", nil, false},
	"retry a SequentialJob":       {sequentialJobsPath, sequentialJobA, "retry", failed, false},
	"pause a LeaderWorkerSet":     {leaderWorkerSetsPath, groupsA, "pause", nil, true},
	"resume a LeaderWorkerSet":    {leaderWorkerSetsPath, groupsA, "resume", suspended, true},
	"restart a LeaderWorkerSet":   {leaderWorkerSetsPath, groupsA, "restart", nil, false},
	"roll a LeaderWorkerSet back": {leaderWorkerSetsPath, groupsA, "rollback", nil, true},
}

// start returns a server that holds the object, with the gatekeeper in front of it.
func (c actionCase) start(t *testing.T, chain *gatekeeper) *inProcess {
	t.Helper()
	config, former := newConfig(t), make(formerRevisions, 1)
	config.Recorder, config.Revisions = noEvents{}, former
	config.Generic.AdmissionControl = chain
	s := startInProcess(t, resource{c.path, "a"}, config)
	s.hold(t, []byte(c.object))
	if c.change != nil {
		c.change(s.store.stored)
	}
	if set, ok := s.store.stored.(*leaderworkerset.LeaderWorkerSet); ok {
		former[0] = revisionOf(t, set)
	}
	return s
}

// revisionOf returns revision 1 of a set, with the image v1.
func revisionOf(t *testing.T, set *leaderworkerset.LeaderWorkerSet) appsv1.ControllerRevision {
	t.Helper()
	v1 := &leaderworkersetv1.LeaderWorkerSet{}
	if err := leaderworkersetv1.Convert_leaderworkerset_LeaderWorkerSet_To_v1_LeaderWorkerSet(set.DeepCopy(), v1, nil); err != nil {
		t.Fatal(err)
	}
	v1.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0].Image = "v1"
	payload, err := helper.RevisionPayload(v1)
	if err != nil {
		t.Fatal(err)
	}
	revision := appsv1.ControllerRevision{Revision: 1, Data: runtime.RawExtension{Raw: payload}}
	revision.OwnerReferences = []metav1.OwnerReference{{UID: types.UID(set.UID), Controller: ptr.To(true)}}
	return revision
}

// act sends the request, and returns the message of the response.
func (c actionCase) act(t *testing.T, s *inProcess, query string) (string, *metav1.Status) {
	t.Helper()
	s.store.written = nil
	w, refusal := s.send(t, http.MethodPost, s.object()+"/"+c.action+query, mediaJSON, []byte("{}"))
	if refusal != nil {
		return refusal.Message, refusal
	}
	var answer struct {
		Status struct{ Message string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Status.Message, nil
}

// fieldsOf returns the fields of an object. The server compares these to find out what an action changes.
func fieldsOf(obj runtime.Object) (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(obj).Elem()) {
		if len(f.Index) == 1 {
			names = append(names, f.Name)
		}
	}
	return names
}

// TestActionsThatEditPassTheAdmissionOfUpdate covers all actions of all kinds. Those that change the status alone pass the admission of
// their subresource only.
func TestActionsThatEditPassTheAdmissionOfUpdate(t *testing.T) {
	names := map[string]string{
		jobsetsPath:          "jobset.x-k8s.io/v1alpha2, Resource=jobsets jobset.x-k8s.io/v1alpha2, Kind=JobSet",
		sequentialJobsPath:   "batch.jobset-apiserver.io/v1alpha1, Resource=sequentialjobs batch.jobset-apiserver.io/v1alpha1, Kind=SequentialJob",
		leaderWorkerSetsPath: "leaderworkerset.x-k8s.io/v1, Resource=leaderworkersets leaderworkerset.x-k8s.io/v1, Kind=LeaderWorkerSet",
	}
	for name, c := range actionCases {
		t.Run(name, func(t *testing.T) {
			chain := &gatekeeper{}
			s := c.start(t, chain)
			if diff := cmp.Diff([]string{"TypeMeta", "ObjectMeta", "Spec", "Status"}, fieldsOf(s.store.stored)); diff != "" {
				t.Errorf("what else do actions change? (-want +got):\n%s", diff)
			}
			chain.asked = nil
			if message, refusal := c.act(t, s, "?dryRun=All"); refusal != nil {
				t.Fatalf("refused: %s", message)
			}
			var want []string
			if c.edits {
				what := fmt.Sprintf(" UPDATE %s default/a by alice UpdateOptions", names[c.path])
				want = []string{"mutate" + what, "validate" + what}
			}
			if diff := cmp.Diff(want, chain.asked); diff != "" || chain.dryRuns != len(want) {
				t.Errorf("%d of the questions say that it is a dry run; questions (-want +got):\n%s", chain.dryRuns, diff)
			}
			chain.validate = func(a admission.Attributes) error { return admission.NewForbidden(a, errors.New("frozen")) }
			message, refusal := c.act(t, s, "")
			if c.edits != (refusal != nil) || c.edits && !strings.HasSuffix(message, `"a" is forbidden: frozen`) {
				t.Errorf("while updates are forbidden, the answer is %q", message)
			}
		})
	}
}

// TestWarningsOfActions covers docs/kueue.md#restarts-after-a-job-has-succeeded.
func TestWarningsOfActions(t *testing.T) {
	c := actionCase{path: jobsetsPath, object: jobSetA, action: "restart", change: func(obj runtime.Object) {
		js := obj.(*jobset.JobSet)
		js.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "team"}
		js.Status.ReplicatedJobsStatus = []jobset.ReplicatedJobStatus{{Name: "w", Succeeded: 1}}
	}}
	for want, prepare := range map[string]func(runtime.Object){
		`299 - "Kueue took back the quota of the Jobs that had succeeded and cannot reserve it again in queue \"team\"; kubectl jobset why a shows what to do"`: func(runtime.Object) {},
		"": suspended, // which is refused
	} {
		s := c.start(t, &gatekeeper{})
		prepare(s.store.stored)
		w, _ := s.send(t, http.MethodPost, s.object()+"/restart", mediaJSON, []byte("{}"))
		if got := w.Header().Get("Warning"); got != want {
			t.Errorf("got the warning %q, want %q", got, want)
		}
	}
}
