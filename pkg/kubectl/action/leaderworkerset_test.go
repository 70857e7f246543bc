// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/lookups"
)

// llm is a set of four replicas, all ready.
func llm(change ...func(*leaderworkersetv1.LeaderWorkerSet)) *leaderworkersetv1.LeaderWorkerSet {
	set := &leaderworkersetv1.LeaderWorkerSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "leaderworkerset.x-k8s.io/v1", Kind: "LeaderWorkerSet"},
		ObjectMeta: metav1.ObjectMeta{Name: "llm", Namespace: "ns", UID: "u-1", Generation: 3},
		Spec:       leaderworkersetv1.LeaderWorkerSetSpec{Replicas: ptr.To[int32](4)},
		Status: leaderworkersetv1.LeaderWorkerSetStatus{
			ObservedGeneration: 3, Replicas: 4, ReadyReplicas: 4, UpdatedReplicas: 4,
			Conditions: []metav1.Condition{{Type: "Available", Status: metav1.ConditionTrue}},
		},
	}
	for _, f := range change {
		f(set)
	}
	return set
}

// callGroups runs a command against a server with one set, which answers actions with the code.
func callGroups(t *testing.T, answer func(body []byte) (int, any), command func(*cli.Factory, []cli.For[Target]) *cobra.Command, args ...string) outcome {
	t.Helper()
	var got outcome
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lookups.Answer(w, r, "leaderworkersets") {
			return
		}
		path, found := strings.CutPrefix(r.URL.Path, "/apis/leaderworkerset.x-k8s.io/v1/namespaces/ns/leaderworkersets/llm")
		if !found {
			t.Errorf("unexpected request %s %s", r.Method, r.URL)
		}
		body, _ := io.ReadAll(r.Body)
		got.Requests = append(got.Requests, strings.TrimSpace(r.Method+" "+path+" "+spec(t, body)))
		code, object := http.StatusOK, any(llm())
		if r.Method == http.MethodPost {
			code, object = answer(body)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(object)
	}))
	defer server.Close()
	var out, errOut bytes.Buffer
	f := cli.NewFactory(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	f.Flags.APIServer, f.Flags.Namespace = ptr.To(server.URL), ptr.To("ns")
	cmd := command(f, []cli.For[Target]{{Kind: cli.JobSet, Do: JobSet{}}, {Kind: cli.SequentialJob, Do: SequentialJob{}}, {Kind: cli.LeaderWorkerSet, Do: LeaderWorkerSet{}}})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		got.Err = err.Error()
	}
	got.Out, got.ErrOut = out.String(), errOut.String()
	return got
}

// done answers as the server does when an action took effect.
func done(revision int64) func([]byte) (int, any) {
	return func(body []byte) (int, any) {
		var request batchv1alpha1.LeaderWorkerSetPause // all kinds of requests have the same status
		_ = json.Unmarshal(body, &request)
		request.Status = batchv1alpha1.LeaderWorkerSetActionStatus{
			UID: "u-1", User: "alice", Revision: revision, Time: ptr.To(metav1.NewMicroTime(time.Unix(1767323045, 0))), Message: "done",
		}
		return http.StatusCreated, request
	}
}

// saying answers with another message.
func saying(answer func([]byte) (int, any), message string) func([]byte) (int, any) {
	return func(body []byte) (int, any) {
		code, object := answer(body)
		request := object.(batchv1alpha1.LeaderWorkerSetPause)
		request.Status.Message = message
		return code, request
	}
}

func refused(err *apierrors.StatusError) func([]byte) (int, any) {
	err.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return func([]byte) (int, any) { return int(err.ErrStatus.Code), err.ErrStatus }
}

func TestLeaderWorkerSetActions(t *testing.T) {
	const read = "GET"
	conflict := func(field, message string) *apierrors.StatusError {
		err := apierrors.NewConflict(leaderworkersetv1.SchemeGroupVersion.WithResource("leaderworkersets").GroupResource(), "llm", errors.New("preconditions are not met"))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: field, Message: message}}
		return err
	}
	const object = "leaderworkerset.leaderworkerset.x-k8s.io/llm"
	const keep = `; to keep the last 3: kubectl patch leaderworkerset llm -n ns --type=merge -p '{"spec":{"revisionHistoryLimit":3}}'`
	type command = func(*cli.Factory, []cli.For[Target]) *cobra.Command
	cases := map[string]struct {
		command command
		args    string
		answer  func([]byte) (int, any)
		want    outcome
	}{
		"restart all": {NewRestart, "lws/llm --reason stuck", done(0), outcome{
			Requests: []string{read, `POST /restart LeaderWorkerSetRestart{"reason":"stuck","preconditions":{"uid":"u-1"}}`}, Out: object + " restarted\n"}},
		"restart a group": {NewRestart, "lws/llm --group 3 --restarts 2 --generation 3", done(0), outcome{
			Requests: []string{`POST /restart LeaderWorkerSetRestart{"group":3,"preconditions":{"generation":3,"restarts":2}}`}, Out: object + " restarted (group 3)\n"}},
		"rollback": {NewRollback, "llm", done(2), outcome{
			Requests: []string{read, `POST /rollback LeaderWorkerSetRollback{"preconditions":{"uid":"u-1"}}`}, Out: object + " rolled back (revision 2)\n"}},
		"rollback to a revision": {NewRollback, "leaderworkersets/llm --to-revision 2 -o name", done(2), outcome{
			Requests: []string{read, `POST /rollback LeaderWorkerSetRollback{"toRevision":2,"preconditions":{"uid":"u-1"}}`}, Out: object + "\n"}},
		"rollback of a paused set": {NewRollback, "lws/llm", saying(done(2), "rolled back to revision 2; no group is replaced until it is resumed"), outcome{
			Requests: []string{read, `POST /rollback LeaderWorkerSetRollback{"preconditions":{"uid":"u-1"}}`}, Out: object + " rolled back (revision 2); no group is replaced until it is resumed\n"}},
		"rollback of a set that keeps no revisions": {NewRollback, "lws/llm", saying(done(2), "rolled back to revision 2; spec.revisionHistoryLimit is 0, so that revision 3 is lost"), outcome{
			Requests: []string{read, `POST /rollback LeaderWorkerSetRollback{"preconditions":{"uid":"u-1"}}`},
			Out:      object + " rolled back (revision 2); spec.revisionHistoryLimit is 0, so that revision 3 is lost" + keep + "\n"}},
		"rollback without revisions": {NewRollback, "lws/llm", refused(apierrors.NewConflict(leaderworkersetv1.SchemeGroupVersion.WithResource("leaderworkersets").GroupResource(), "llm",
			errors.New("there is no former revision to return to: only revision 3 exists; spec.revisionHistoryLimit is 0"))), outcome{
			Requests: []string{read, `POST /rollback LeaderWorkerSetRollback{"preconditions":{"uid":"u-1"}}`}, Err: cli.ErrSilent.Error(),
			ErrOut: "error: " + object + " not rolled back: there is no former revision to return to: only revision 3 exists; spec.revisionHistoryLimit is 0" + keep + "\n"}},
		"pause":  {NewPause, "lws/llm", done(0), outcome{Requests: []string{"POST /pause LeaderWorkerSetPause{}"}, Out: object + " paused\n"}},
		"resume": {NewResume, "lws/llm --wait", done(0), outcome{Requests: []string{"POST /resume LeaderWorkerSetResume{}", read}, Out: object + " resumed\n" + object + ": 4 of 4 groups ready\n"}},
		"a generation that is out of date": {NewPause, "lws/llm --generation 2", refused(conflict("spec.preconditions.generation", "generation 3 is current")), outcome{
			Requests: []string{`POST /pause LeaderWorkerSetPause{"preconditions":{"generation":2}}`}, Err: cli.ErrSilent.Error(),
			ErrOut: "error: " + object + " not paused: --generation 2 is out of date; generation 3 is current\n"}},
		"a group that was restarted": {NewRestart, "lws/llm --group 1 --restarts 0", refused(conflict("spec.preconditions.restarts", "group 1 has been restarted once")), outcome{
			Requests: []string{`POST /restart LeaderWorkerSetRestart{"group":1,"preconditions":{"restarts":0}}`}, Err: cli.ErrSilent.Error(),
			ErrOut: "error: " + object + " not restarted: --restarts 0 is out of date; group 1 has been restarted once\n"}},
		"a server of upstream": {NewResume, "lws/llm", refused(apierrors.NewNotFound(leaderworkersetv1.SchemeGroupVersion.WithResource("leaderworkersets").GroupResource(), "llm")), outcome{
			Requests: []string{"POST /resume LeaderWorkerSetResume{}", read}, Err: cli.ErrSilent.Error(),
			ErrOut: "error: " + object + " not resumed: this server has no action resume for LeaderWorkerSets; it is a feature of jobset-apiserver\n"}},
		"suspend":           {NewSuspend, "lws/llm", nil, outcome{Err: `NAME: must be a JobSet or SequentialJob, as NAME, jobset/NAME or sequentialjob/NAME, not "lws/llm"`}},
		"pause a JobSet":    {NewPause, "js/train", nil, outcome{Err: `NAME: must be a LeaderWorkerSet, as NAME or leaderworkerset/NAME, not "js/train"`}},
		"an attempt":        {NewRestart, "lws/llm --attempt 2", nil, outcome{Err: "--attempt: is for JobSets and SequentialJobs, and cannot be used with leaderworkerset/llm"}},
		"a group of a set":  {NewRestart, "js/train --group 2", nil, outcome{Err: "--group: is for LeaderWorkerSets, and cannot be used with train"}},
		"a negative group":  {NewRestart, "lws/llm --group=-1", nil, outcome{Err: "--group: must be 0 or more, not -1"}},
		"restarts of all":   {NewRestart, "lws/llm --restarts 1", nil, outcome{Err: "--restarts: requires --group"}},
		"negative revision": {NewRollback, "lws/llm --to-revision=-1", nil, outcome{Err: "--to-revision: must be 0 or more, not -1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := callGroups(t, tc.answer, tc.command, strings.Fields(tc.args)...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGroupProgress(t *testing.T) {
	updating := func(set *leaderworkersetv1.LeaderWorkerSet) {
		set.Status.Conditions[0].Status = metav1.ConditionFalse
		set.Status.ReadyReplicas, set.Status.UpdatedReplicas = 3, 2
	}
	paused := func(set *leaderworkersetv1.LeaderWorkerSet) {
		set.Spec.Paused = ptr.To(true)
		set.Status.LastAction = &leaderworkersetv1.LastAction{Action: leaderworkersetv1.ActionPause, User: "bob"}
	}
	restarting := func(leaders ...types.UID) func(*leaderworkersetv1.LeaderWorkerSet) {
		return func(set *leaderworkersetv1.LeaderWorkerSet) {
			set.Status.Restart = &leaderworkersetv1.RequestedRestart{All: true, Leaders: leaders, Found: len(leaders) > 0}
		}
	}
	for name, tc := range map[string]struct {
		goal Goal
		set  *leaderworkersetv1.LeaderWorkerSet
		want Progress
	}{
		"ready":                    {GoalReady, llm(), Progress{Reached: true, Text: "4 of 4 groups ready"}},
		"with a surge":             {GoalReady, llm(func(s *leaderworkersetv1.LeaderWorkerSet) { s.Status.ReadyReplicas = 5 }), Progress{Reached: true, Text: "4 of 4 groups ready"}},
		"not seen yet":             {GoalReady, llm(func(s *leaderworkersetv1.LeaderWorkerSet) { s.Generation = 4 }), Progress{Text: "the controller has not seen the change yet"}},
		"a restart not begun":      {GoalReady, llm(restarting()), Progress{Text: "the restart has not begun; 4 of 4 groups ready"}},
		"a restart":                {GoalReady, llm(restarting("a", "b")), Progress{Text: "2 groups to be recreated; 4 of 4 groups ready"}},
		"an update":                {GoalUpdated, llm(updating), Progress{Text: "2 of 4 groups updated, 3 of 4 groups ready"}},
		"a paused update":          {GoalUpdated, llm(updating, paused), Progress{Failure: "rolling updates are paused by bob; run `kubectl jobset resume lws/llm` to resume them"}},
		"a restart while paused":   {GoalReady, llm(updating, paused, func(s *leaderworkersetv1.LeaderWorkerSet) { s.Status.ReadyReplicas = 4 }), Progress{Reached: true, Text: "2 of 4 groups updated, 4 of 4 groups ready; rolling updates are paused"}},
		"a pause":                  {GoalPaused, llm(updating, paused), Progress{Reached: true, Text: "paused, 2 of 4 groups updated, 3 of 4 groups ready"}},
		"a pause that was resumed": {GoalPaused, llm(), Progress{Failure: "the set was resumed in the meantime"}},
		"recreated":                {GoalReady, llm(func(s *leaderworkersetv1.LeaderWorkerSet) { s.UID = "u-2" }), Progress{Failure: "the set was deleted, and another one created under its name"}},
		"deleted":                  {GoalReady, llm(func(s *leaderworkersetv1.LeaderWorkerSet) { s.DeletionTimestamp = &metav1.Time{} }), Progress{Failure: "the set is being deleted"}},
		"failed": {GoalReady, llm(updating, func(s *leaderworkersetv1.LeaderWorkerSet) {
			s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: "Failed", Status: metav1.ConditionTrue, Reason: "MaxGroupRestartsExceeded", Message: "group 1 failed"})
		}), Progress{Failure: "the set has failed (MaxGroupRestartsExceeded): group 1 failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, replicaProgress(tc.goal, tc.set, Status{UID: "u-1"})); diff != "" {
				t.Errorf("progress (-want +got):\n%s", diff)
			}
		})
	}
}
