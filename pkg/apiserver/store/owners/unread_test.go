// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// TestUnreadOwnersAreNotLost has an object in the store whose UID cannot be read: what may belong to it is not lost,
// whatever the reference looks like.
func TestUnreadOwnersAreNotLost(t *testing.T) {
	checker := check{&Checker{}, sets.New("jobset.x-k8s.io")}
	known := sets.New(Unread("ns", "damaged"))
	owner := func(group, name string, controller bool) metav1.OwnerReference {
		o := metav1.OwnerReference{APIVersion: group + "/v1", Kind: "JobSet", Name: name, UID: types.UID("uid-" + name)}
		if controller {
			o.Controller = ptr.To(true)
		}
		return o
	}
	for name, tc := range map[string]struct {
		namespace string
		owners    []metav1.OwnerReference
		want      bool
	}{
		"the controller":                 {"ns", []metav1.OwnerReference{owner("jobset.x-k8s.io", "damaged", true)}, true},
		"an owner that does not control": {"ns", []metav1.OwnerReference{owner("jobset.x-k8s.io", "damaged", false)}, true},
		"one of several owners":          {"ns", []metav1.OwnerReference{owner("jobset.x-k8s.io", "gone", false), owner("jobset.x-k8s.io", "damaged", false)}, true},
		"an owner beside a controller":   {"ns", []metav1.OwnerReference{owner("jobset.x-k8s.io", "gone", true), owner("jobset.x-k8s.io", "damaged", false)}, true},
		"another name":                   {"ns", []metav1.OwnerReference{owner("jobset.x-k8s.io", "gone", true)}, false},
		"another namespace":              {"other", []metav1.OwnerReference{owner("jobset.x-k8s.io", "damaged", true)}, false},
		"an owner of another kind":       {"ns", []metav1.OwnerReference{owner("apps", "damaged", false), owner("jobset.x-k8s.io", "gone", false)}, false},
	} {
		object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "child", OwnerReferences: tc.owners}}
		if got := checker.unread(object, known); got != tc.want {
			t.Errorf("%s: unread is %t, want %t", name, got, tc.want)
		}
	}
}
