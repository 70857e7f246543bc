// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	jobsetfake "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

func TestChartOfGroups(t *testing.T) {
	for name, tc := range map[string]struct {
		groups *replicasOf
		second float64
		ascii  bool
		widths []int
	}{
		"leaderworkerset-rolling": {groups: rolling(), second: 10800, widths: []int{0, 60, 80, 120, 200}},
		"leaderworkerset-paused":  {groups: paused(), second: 10800, widths: []int{80}},
		"leaderworkerset-failing": {groups: failing(), second: 90000, widths: []int{80, 120}},
		"leaderworkerset-crowd":   {groups: crowd(), second: 10800, widths: []int{80}},
		"leaderworkerset-pending": {groups: newReplicasOf(2), second: 2, widths: []int{80}},
		"leaderworkerset-ascii":   {groups: paused(), second: 10800, ascii: true, widths: []int{80}},
	} {
		for _, width := range tc.widths {
			t.Run(fmt.Sprintf("%s-%d", name, width), func(t *testing.T) {
				got := text(tc.groups.timeline(tc.second), screen{Terminal: cli.Terminal{Width: width, ASCII: tc.ascii}, zone: time.UTC})
				for _, line := range strings.Split(got, "\n") {
					if width > 0 && cli.Columns(line) > width {
						t.Errorf("wider than %d columns: %q", width, line)
					}
				}
				golden.Compare(t, fmt.Sprintf("%s-%d.txt", name, width), got)
			})
		}
	}
}

// phaseWords are phases with their begin and end in seconds after noon.
func phaseWords(phases []Phase) string {
	var out []string
	for _, p := range phases {
		end := fmt.Sprint(p.End.Sub(noon).Seconds())
		if p.Open {
			end = ""
		}
		out = append(out, fmt.Sprintf("%s %v-%s", p.Kind, p.Begin.Sub(noon).Seconds(), end))
	}
	return strings.Join(out, ", ")
}

func TestPhasesOfGroups(t *testing.T) {
	for name, tc := range map[string]struct {
		groups *replicasOf
		second float64
		want   []string
	}{
		"a rolling update": {rolling(), 10800, []string{
			"creating 5-65, starting 65-300, running 300-", "creating 5220-5280, starting 5280-, failed 5185-5185", "creating 9060-9120, starting 9120-9900, running 9900-", "",
		}},
		"failures": {failing(), 90000, []string{
			"creating 80030-80090, running 80090-89000, failed 89000-", "creating 60030-60090, running 60090-70000, failed 70000-", "running 30-89990, creating 89990-",
		}},
		"clocks that differ": {rolling(), 9100, []string{
			"creating 5-65, starting 65-300, running 300-", "creating 5220-5280, starting 5280-, failed 5185-5185", "creating 9060-9100, running 9100-", "",
		}},
	} {
		var got []string
		for _, run := range tc.groups.timeline(tc.second).Replicas {
			got = append(got, phaseWords(run.Phases))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestCauseWithoutAPod names the StatefulSet of a replica of which no failed pod is known.
func TestCauseWithoutAPod(t *testing.T) {
	g := rolling()
	g.set.Status.Groups[0].FirstCause = &jobsetv1alpha2.FailureCause{Job: "vllm-1", Message: "a worker pod was deleted"}
	got := text(g.timeline(10800), screen{Terminal: cli.Terminal{Width: 80}, zone: time.UTC})
	if want := "first cause: StatefulSet vllm-1: a worker pod was deleted"; !strings.Contains(got, want) {
		t.Errorf("no %q in:\n%s", want, got)
	}
}

func TestPhasesOfRevisions(t *testing.T) {
	done := rolling()
	done.set.Status.Conditions[0].Status, done.set.Status.Conditions[0].LastTransitionTime = metav1.ConditionFalse, metav1.NewTime(after(9600))
	before := rolling()
	before.set.Status.Conditions[0].Status, before.set.Status.Conditions[0].LastTransitionTime = metav1.ConditionFalse, metav1.NewTime(after(8000))
	edited := rolling()
	edited.set.Spec.Paused = ptr.To(true) // by an edit: it is not on record when
	for name, tc := range map[string]struct {
		groups *replicasOf
		want   []string
	}{
		"an update goes on":                {rolling(), []string{"current 1-9000", "updating 9000-"}},
		"it is paused":                     {paused(), []string{"current 1-9000", "updating 9000-10000, paused 10000-"}},
		"it is paused by an edit":          {edited, []string{"current 1-9000", "updating 9000-"}},
		"it is done":                       {done, []string{"current 1-9000", "updating 9000-9600, current 9600-"}},
		"the condition is of a former one": {before, []string{"current 1-9000", "current 9000-"}},
		"the first revision":               {failing(), []string{"current 1-"}},
	} {
		var got []string
		for _, r := range tc.groups.timeline(10800).Revisions {
			got = append(got, phaseWords(r.Phases))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTimelineOfGroupsAsData(t *testing.T) {
	data, err := json.Marshal(paused().timeline(10800))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"leaderWorkerSet":"vllm","namespace":"team-a","state":"Paused","reason":"GroupsUpdating","groupsReady":2,"groupsUpdated":1,"groupsWanted":4,"groupSize":2,`,
		`"lifeSeconds":10800,"restarts":4,"lastAction":{"action":"Pause","user":"bob"`,
		`{"number":2,"key":"6859c84d69","groups":1,"begin":"2026-03-09T14:30:00Z","end":"2026-03-09T15:00:00Z","open":true,"phases":[{"kind":"updating"`,
		`"revision":"5b8f7c9d44","revisionNumber":1,"createTime":"2026-03-09T13:27:00Z","phases":`, `"index":3,"state":"Missing"`,
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%s is missing in %s", want, data)
		}
	}
}

func TestPageOfGroups(t *testing.T) {
	g := paused()
	g.set.Status.LastAction.Reason = "<script>alert(1)</script>"
	var b bytes.Buffer
	if err := Page(&b, g.timeline(10800), time.UTC); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"<title>Timeline of leaderworkerset team-a/vllm</title>", "Groups of leaderworkerset vllm over time", "<title>revision 2: paused, 13m (2026-03-09 14:46:40 to now)</title>",
		`<tr><td class="number" data-label="Revision">2</td><td class="trigger" data-label="Key">6859c84d69</td>`, `<td class="end-starting" data-label="State">Starting</td>`,
		"<b>Recreated:</b> 2026-03-09 13:26:30", "<b>First cause:</b> 2026-03-09 13:26:25, pod vllm-1-1 on node node-017: container main, exit code 137, OOMKilled", "&lt;script&gt;alert(1)",
		`<rect class="bar failed" x="48.009%"`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
	if strings.Contains(b.String(), "<script>") {
		t.Error("what a user wrote is not escaped")
	}
}

func TestReaderOfGroups(t *testing.T) {
	g := rolling()
	kube := fake.NewClientset()
	for i := range g.sets {
		if err := kube.Tracker().Add(&g.sets[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range g.pods {
		if err := kube.Tracker().Add(&g.pods[i]); err != nil {
			t.Fatal(err)
		}
	}
	g.revision(1, "other", 3)
	g.revisions[2].OwnerReferences[0].UID = types.UID("another")
	for _, r := range []int{1, 2, 0} {
		if err := kube.Tracker().Add(g.revisions[r]); err != nil {
			t.Fatal(err)
		}
	}
	c := &cli.Clients{Namespace: "team-a", Kube: kube, JobSets: jobsetfake.NewClientset(g.set)}
	got, err := LeaderWorkerSet(t.Context(), c, "vllm", false)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, r := range got.(*LeaderWorkerSetTimeline).Revisions {
		keys = append(keys, r.Key)
	}
	if !slices.Equal(keys, []string{oldKey, newKey}) || len(got.(*LeaderWorkerSetTimeline).Replicas) != 4 {
		t.Errorf("revisions %v of %+v", keys, got)
	}
	if _, err := LeaderWorkerSet(t.Context(), c, "vllm", true); err == nil || err.Error() != "--jobs: a LeaderWorkerSet has no Jobs; omit the flag" {
		t.Errorf("with Jobs: error %v", err)
	}
	kube.PrependReactor("list", "controllerrevisions", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(appsv1.SchemeGroupVersion.WithResource("controllerrevisions").GroupResource(), "", nil)
	})
	got, err = LeaderWorkerSet(t.Context(), c, "vllm", false)
	if err != nil || len(got.(*LeaderWorkerSetTimeline).Revisions) != 0 || !strings.HasPrefix(got.(*LeaderWorkerSetTimeline).Note, "revisions are not known: listing the controllerrevisions of leaderworkerset vllm: ") {
		t.Errorf("without permission: %+v, error %v", got, err)
	}
}
