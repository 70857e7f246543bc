// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

// vllm is a set of two replicas of two pods. The replica 1 was recreated after its worker failed.
func vllm() *snapshot.LeaderWorkerSet {
	set := builders.LeaderWorkerSet("vllm", 2, 2)
	set.Status.Groups = []leaderworkersetv1.GroupStatus{{
		Index: 1, Restarts: 1, LastRestartTime: ptr.To(after(20)),
		FirstCause: &jobsetv1alpha2.FailureCause{Job: "vllm-1", Pod: "vllm-1-1", Container: "main", ExitCode: ptr.To[int32](3), Message: "cuda lost", Time: ptr.To(after(15))},
	}}
	leaders := builders.LeaderStatefulSet(set, "k")
	sets, pods := []appsv1.StatefulSet{*leaders}, []corev1.Pod{}
	born := func(pod *corev1.Pod) { pod.CreationTimestamp = after(30) }
	for i := range 2 {
		leader := builders.LeaderPod(set, leaders, i, born)
		workers := builders.WorkerStatefulSet(set, leader)
		sets = append(sets, *workers)
		pods = append(pods, *leader, *builders.WorkerPod(set, workers, 1, born))
	}
	return snapshot.AssembleLeaderWorkerSet(set, sets, pods, after(1000).Time)
}

func TestChooseGroups(t *testing.T) {
	for name, tc := range map[string]struct {
		change   func(*options)
		want     []string
		wantNote string
		wantErr  string
	}{
		"all groups":             {want: []string{"[0-0] vllm-0/main", "[0-1] vllm-0-1/main", "[1-0] vllm-1/main", "[1-1] vllm-1-1/main"}},
		"one group":              {change: func(o *options) { o.group = "1" }, want: []string{"[1-0] vllm-1/main", "[1-1] vllm-1-1/main"}},
		"the leaders":            {change: func(o *options) { o.worker = "0" }, want: []string{"[0-0] vllm-0/main", "[1-0] vllm-1/main"}},
		"one worker":             {change: func(o *options) { o.group, o.worker = "0", "1" }, want: []string{"[0-1] vllm-0-1/main"}},
		"a group that is none":   {change: func(o *options) { o.group = "2" }, wantErr: `--group: must be from 0 to 1, not "2"`},
		"a group without number": {change: func(o *options) { o.group = "01" }, wantErr: `--group: must be from 0 to 1, not "01"`},
		"a worker that is none":  {change: func(o *options) { o.worker = "-1" }, wantErr: `--worker: must be from 0 to 1, not "-1"`},
		"a step":                 {change: func(o *options) { o.step = "a" }, wantErr: "a LeaderWorkerSet has none of these"},
		"an attempt":             {change: func(o *options) { o.attempt = 1 }, wantErr: "--attempt: a LeaderWorkerSet has no attempts"},
		"what failed first":      {change: func(o *options) { o.firstFailed = true }, wantNote: "pod vllm-1-1, which ended the former run of group 1, is gone with its log; the recorded cause is container main, exit code 3"},
		"what failed first in a group that did not": {change: func(o *options) { o.firstFailed, o.group = true, "0" }, wantNote: "no failed pod of leaderworkerset vllm exists"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &options{selection: selection{jobIndex: -1}}
			if tc.change != nil {
				tc.change(o)
			}
			got, err := o.choose(sourceOfLeaderWorkerSet(vllm()))
			if tc.wantErr != "" || err != nil {
				if err == nil || tc.wantErr == "" || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("got error %v, want %q", err, tc.wantErr)
				}
				return
			}
			var streams []string
			for _, s := range got.streams {
				streams = append(streams, "["+s.rank+"] "+s.pod.Name+"/"+s.container)
			}
			if diff := cmp.Diff(tc.want, streams); diff != "" {
				t.Errorf("streams (-want +got):\n%s", diff)
			}
			if notes := strings.Join(got.notes, "\n"); !strings.Contains(notes, tc.wantNote) {
				t.Errorf("got notes %q, want %q", notes, tc.wantNote)
			}
		})
	}
}

func TestFailedPodThatStillExists(t *testing.T) {
	g := vllm()
	for _, pod := range g.Pods() {
		pod.CreationTimestamp = after(1)
	}
	o := &options{selection: selection{jobIndex: -1}, firstFailed: true}
	got, err := o.choose(sourceOfLeaderWorkerSet(g))
	if err != nil || len(got.streams) != 1 || got.streams[0].pod.Name != "vllm-1-1" {
		t.Errorf("got %+v, error %v", got, err)
	}
}

func TestGroupsAreForLeaderWorkerSetsOnly(t *testing.T) {
	s := selection{jobIndex: -1, group: "0"}
	if err := s.validate(train()); err == nil || !strings.Contains(err.Error(), "only LeaderWorkerSets have groups") {
		t.Errorf("got %v", err)
	}
	if err := s.validateJob(); err == nil {
		t.Error("a step has no groups")
	}
}

// TestLinesOfGroups prints the logs of all replicas. Lines of logs are never cut, whatever the width of the terminal.
func TestLinesOfGroups(t *testing.T) {
	opener := func(_ context.Context, s stream, _ *corev1.PodLogOptions) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("loading shard " + s.rank + strings.Repeat(" of many", 30) + "\nready\n")), nil
	}
	for _, width := range []int{0, 60, 80, 120, 200} {
		for name, terminal := range map[string]cli.Terminal{"leaderworkerset.txt": {Width: width}, "leaderworkerset-colors.txt": {Width: width, Colors: true}} {
			o := &options{selection: selection{jobIndex: -1}}
			chosen, err := o.choose(sourceOfLeaderWorkerSet(vllm()))
			if err != nil {
				t.Fatal(err)
			}
			var out, errOut buffer
			if failed, err := printAll(t.Context(), chosen.streams, corev1.PodLogOptions{}, 2, opener, newSink(&out, &errOut, terminal)); failed != 0 || err != nil {
				t.Fatalf("%d failed, error %v: %s", failed, err, errOut.String())
			}
			golden.Compare(t, name, out.String())
		}
	}
}
