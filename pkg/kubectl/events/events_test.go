// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

var now = time.Now().Truncate(time.Second)

func train() *jobsetv1alpha2.JobSet {
	js := builders.JobSet("train", builders.WithJobs("w", 3, 2), builders.WithJobs("w-1", 1, 1))
	js.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	js.Spec.VolumeClaimPolicies = []jobsetv1alpha2.VolumeClaimPolicy{{Templates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}}}
	js.Spec.Network = &jobsetv1alpha2.Network{EnableDNSHostnames: new(bool)}
	*js.Spec.Network.EnableDNSHostnames = true
	return js
}

func TestMembers(t *testing.T) {
	s := membersOf(train())
	for object, want := range map[string]bool{
		"JobSet/train": true, "JobSet/train-w": false,
		"Job/train-w-0": true, "Job/train-w-17": true, "Job/train-w-x": false, "Job/train-v-0": false, "Job/train-w-1-0": true, "Job/train-w-": false,
		"Pod/train-w-0-1-abcde": true, "Pod/train-w-0-abcde": true, "Pod/train-w-0": false, "Pod/train-v-0-abcde": false, "Pod/other-train-w-0-abcde": false,
		"Service/train": true, "Service/w": false,
		"PersistentVolumeClaim/data-train": true, "PersistentVolumeClaim/data": false,
		"Workload/jobset-train-1a2b3": true, "Workload/jobset-train-w-1a2b3": false,
		"Node/train": false,
	} {
		kind, name, _ := strings.Cut(object, "/")
		if got := s.Has(kind, name); got != want {
			t.Errorf("%s is a member: %v, want %v", object, got, want)
		}
	}
}

// event is one about an object, seen so long ago.
func event(object string, seen time.Duration, change ...func(*corev1.Event)) *corev1.Event {
	kind, name, _ := strings.Cut(object, "/")
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: builders.Namespace, Name: fmt.Sprintf("%s.%d", strings.ToLower(name), seen), UID: types.UID(object), ResourceVersion: "5"},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name}, Type: "Normal", Reason: "Because", Message: "it is so",
		LastTimestamp: metav1.NewTime(now.Add(-seen)), FirstTimestamp: metav1.NewTime(now.Add(-seen)), Count: 1,
	}
	for _, f := range change {
		f(e)
	}
	return e
}

func warning(e *corev1.Event) { e.Type = "Warning" }

func clusterWith(events ...*corev1.Event) (*cli.Clients, *kubefake.Clientset) {
	var objects []runtime.Object
	for _, e := range events {
		objects = append(objects, e)
	}
	kube := kubefake.NewClientset(objects...)
	return &cli.Clients{Namespace: builders.Namespace, Kube: kube}, kube
}

func objectsOf(events []Event) (out []string) {
	for _, e := range events {
		out = append(out, e.Object)
	}
	return out
}

func TestListIsByTimeAndOfTheSetAlone(t *testing.T) {
	c, _ := clusterWith(
		event("Pod/train-w-0-1-abcde", 3*time.Minute, warning), event("JobSet/train", 9*time.Minute), event("Job/train-w-0", 5*time.Minute), event("Job/other-w-0", time.Minute),
		event("JobSet/train", 2*time.Hour)) // of an earlier set of the name
	for name, tc := range map[string]struct {
		types, want []string
	}{
		"all types": {want: []string{"JobSet/train", "Job/train-w-0", "Pod/train-w-0-1-abcde"}},
		"warnings":  {types: []string{"Warning"}, want: []string{"Pod/train-w-0-1-abcde"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reader{clients: c, members: membersOf(train()), types: tc.types}
			found, _, err := r.list(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, objectsOf(found.events)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestListIsBounded reads pages of more events than are kept.
func TestListIsBounded(t *testing.T) {
	c, kube := clusterWith()
	pages := 0
	kube.PrependReactor("list", "events", func(clientgotesting.Action) (bool, runtime.Object, error) {
		list := &corev1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
		for i := range pageSize {
			list.Items = append(list.Items, *event("JobSet/train", time.Duration(pages*pageSize+i)*time.Second/2))
		}
		if pages++; pages < 6 {
			list.Continue = "more"
		}
		return true, list, nil
	})
	found, version, err := (&reader{clients: c, members: membersOf(train())}).list(t.Context())
	if err != nil || version != "9" {
		t.Fatalf("version %q, %v", version, err)
	}
	if len(found.events) != mostEvents || found.left != 6*pageSize-mostEvents || cap(found.events) > 4*mostEvents {
		t.Errorf("%d events kept in %d, %d left out", len(found.events), cap(found.events), found.left)
	}
	if oldest := now.Sub(found.events[0].Time.Time); oldest > mostEvents*time.Second/2 {
		t.Errorf("the oldest event is %v old, and newer ones are left out", oldest)
	}
}

func TestTimesAndCountsOfBothAPIs(t *testing.T) {
	series := event("JobSet/train", 0, func(e *corev1.Event) {
		e.LastTimestamp, e.FirstTimestamp, e.Count = metav1.Time{}, metav1.Time{}, 0
		e.EventTime = metav1.NewMicroTime(now.Add(-10 * time.Minute))
		e.Series = &corev1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(now.Add(-time.Minute))}
		e.ReportingController = "jobset-controller"
	})
	want := Event{Time: metav1.NewTime(now.Add(-time.Minute)), FirstTime: metav1.NewTime(now.Add(-10 * time.Minute)), Count: 7, Type: "Normal", Reason: "Because", Object: "JobSet/train", Message: "it is so", Source: "jobset-controller"}
	got := newEvent(series)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"60s (x7 over 10m)", "Normal", "Because", "JobSet/train", "it is so"}, got.cells(cli.Terminal{}, now)); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(now))
		c, kube := clusterWith(event("Job/train-w-0", -time.Minute))
		ctx, stop := context.WithCancel(t.Context())
		watches := 0
		kube.PrependWatchReactor("events", func(action clientgotesting.Action) (bool, watch.Interface, error) {
			watches++
			w := watch.NewFakeWithChanSize(4, false)
			switch watches {
			case 1:
				w.Add(event("Pod/train-w-0-1-abcde", 0, warning))
				w.Add(event("Pod/other", 0))
				w.Modify(event("JobSet/train", 0))
				gone := apierrors.NewResourceExpired("too old").Status()
				w.Error(&gone)
			default:
				stop()
			}
			return true, w, nil
		})
		var got []Event
		err := (&reader{clients: c, members: membersOf(train())}).follow(ctx, "3", func(e Event) error {
			got = append(got, e)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		// The last one was not seen in the watch, and is newer than what was.
		if diff := cmp.Diff([]string{"Pod/train-w-0-1-abcde", "JobSet/train", "Job/train-w-0"}, objectsOf(got)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestFollowEndsWithoutAccess(t *testing.T) {
	c, kube := clusterWith()
	kube.PrependWatchReactor("events", func(clientgotesting.Action) (bool, watch.Interface, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("no"))
	})
	err := (&reader{clients: c, members: membersOf(train())}).follow(t.Context(), "3", func(Event) error { return nil })
	if err == nil || err.Error() != "watching events: events is forbidden: no" {
		t.Errorf("got %v", err)
	}
}

func TestMistakes(t *testing.T) {
	kinds := []cli.For[Loader]{{Kind: cli.JobSet, Do: JobSet}}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no name":           {nil, "NAME: give the name of a JobSet; `kubectl jobset list` lists them"},
		"two names":         {[]string{"a", "b"}, "NAME: must be one JobSet, not 2 (a, b)"},
		"an unknown type":   {[]string{"train", "--types=Error"}, `--types: must be one of Normal, Warning, not "Error"`},
		"a watch of data":   {[]string{"train", "-w", "-o", "json"}, "--watch: prints text only; use `kubectl get events --watch` for other formats"},
		"an unknown format": {[]string{"train", "-o", "table"}, `unable to match a printer suitable for the output format "table"`},
		"no server":         {[]string{"train"}, "connect"},
	} {
		t.Run(name, func(t *testing.T) {
			f := cli.NewFactory(genericiooptions.NewTestIOStreamsDiscard())
			*f.Flags.APIServer = "http://127.0.0.1:1"
			cmd := NewCommand(f, kinds)
			cmd.SilenceUsage, cmd.SilenceErrors = true, true
			cmd.SetArgs(append([]string{}, tc.args...))
			cmd.SetOut(&bytes.Buffer{})
			if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
