// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// createService creates the Service of a set with the label, as the controller of JobSets does.
func (r *rig) createService(set string) {
	r.Helper()
	if _, err := r.kube.CoreV1().Services("ns").Create(r.Context(), newService(set, taken), metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
}

// updateSet stores a set.
func (r *rig) updateSet(js *jobsetv1alpha2.JobSet, version string) {
	r.Helper()
	js.ResourceVersion = version
	if _, err := r.sets.JobsetV1alpha2().JobSets(js.Namespace).Update(r.Context(), js, metav1.UpdateOptions{}); err != nil {
		r.Fatal(err)
	}
}

func beingDeleted(js *jobsetv1alpha2.JobSet) { js.DeletionTimestamp = &metav1.Time{Time: time.Now()} }

// TestWritesOfASmallSet follows a set of 4 pods from its creation to its end: the addresses of pods come and go one by
// one, and slices are written three times at most.
func TestWritesOfASmallSet(t *testing.T) {
	for name, order := range map[string][]int{"in order": {0, 1, 2, 3}, "the first pod last": {3, 2, 1, 0}, "the first pod in between": {1, 2, 0, 3}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil, one(newJobSet("js", "controller", 4)))
				r.createService("js")
				for n := range 4 {
					r.create(podOf("js", n, false))
				}
				r.pass(time.Second)
				for _, n := range order {
					r.change(podOf("js", n, false).Name, start(n))
					r.pass(100*time.Millisecond + 33*time.Millisecond)
				}
				r.pass(time.Second)
				if got := len(r.listed()); got != 4 {
					t.Errorf("%d addresses, want 4", got)
				}
				for _, n := range order {
					r.change(podOf("js", n, false).Name, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
					r.pass(166 * time.Millisecond)
				}
				r.pass(2 * time.Second)
				if got := r.listed(); len(got) > 0 {
					t.Errorf("addresses of a set that has ended: %v", got)
				}
				r.pass(time.Minute)
				if writes := r.writes(); len(writes) > 3 || strings.Contains(strings.Join(writes, ""), "selector") {
					t.Errorf("writes are %v, want three of slices at most", writes)
				}
			})
		})
	}
}

// TestDeletionOfARunningSet writes nothing for the pods of a set that end one by one while it is being deleted.
func TestDeletionOfARunningSet(t *testing.T) {
	for name, deleted := range map[string]func(*rig){
		"in the foreground": func(r *rig) { r.updateSet(newJobSet("js", "controller", 4, beingDeleted), "2") },
		"in the background": func(r *rig) { r.remove("js", "set") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil, one(newJobSet("js", "controller", 4)), newService("js"), podOf("js", 0, true), podOf("js", 1, true), podOf("js", 2, true))
				r.writes()
				deleted(r)
				for n := range 3 {
					r.pass(time.Second)
					if err := r.kube.CoreV1().Pods("ns").Delete(t.Context(), podOf("js", n, true).Name, metav1.DeleteOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				r.remove("js", "service")
				r.pass(5 * time.Second)
				if writes := r.writes(); len(writes) > 0 {
					t.Errorf("writes are %v, want none", writes)
				}
				r.pass(leavingTimeout)
				if diff := cmp.Diff([]string{"delete"}, r.writes()); diff != "" {
					t.Errorf("writes without a garbage collector (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestDeletionThatTakesLong drops addresses of pods that have ended of a set that stays for long although it is being deleted.
func TestDeletionThatTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, one(newJobSet("js", "controller", 2)), newService("js"), podOf("js", 0, true), podOf("js", 1, true))
		r.writes()
		r.updateSet(newJobSet("js", "controller", 2, beingDeleted), "2")
		r.remove("js", "pods")
		r.pass(removalDelayAtEnd + time.Second)
		if diff := cmp.Diff([]string{"update 1"}, r.writes()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}

// TestServiceWithoutAddresses has the Service of a suspended set: there is nothing to write before the first address.
func TestServiceWithoutAddresses(t *testing.T) {
	// inWords replaces the patch of a Service.
	inWords := func(writes []string) (words []string) {
		for _, write := range writes {
			if strings.Contains(write, "selector") {
				write = "take"
			}
			words = append(words, write)
		}
		return words
	}
	for name, tc := range map[string]struct {
		service []func(*corev1.Service)
		// stored means that slices of another set are there.
		stored      bool
		bare, first []string
	}{
		"taken":                             {service: []func(*corev1.Service){taken}, first: []string{"create 1"}},
		"not taken":                         {first: []string{"create 1", "take"}},
		"when slices are known to be taken": {stored: true, bare: []string{"take"}, first: []string{"create 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil, one(newJobSet("js", "controller", 4)), newService("js", tc.service...))
				if tc.stored {
					r.c.accepted.Store(true)
					r.updateSet(newJobSet("js", "controller", 5), "2")
				}
				r.pass(time.Hour)
				if diff := cmp.Diff(tc.bare, inWords(r.writes())); diff != "" {
					t.Errorf("writes without addresses (-want +got):\n%s", diff)
				}
				r.create(podOf("js", 0, true))
				r.pass(time.Minute)
				if diff := cmp.Diff(tc.first, inWords(r.writes())); diff != "" {
					t.Errorf("writes for the first address (-want +got):\n%s", diff)
				}
			})
		})
	}
}
