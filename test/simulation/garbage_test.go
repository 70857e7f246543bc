// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestCollectGarbage deletes a ConfigMap that controls a Secret, which controls another one.
func TestCollectGarbage(t *testing.T) {
	for _, tc := range []struct {
		propagation metav1.DeletionPropagation
		// want are the objects after each turn of the garbage collector, those that are being deleted in parentheses, those
		// without an owner with an asterisk.
		want []string
	}{
		{metav1.DeletePropagationBackground, []string{"child grandchild", "grandchild", "", ""}},
		{metav1.DeletePropagationForeground, []string{"(top*) child grandchild", "(top*) grandchild", "", ""}},
		{metav1.DeletePropagationOrphan, []string{"(top*) child grandchild", "child* grandchild", "child* grandchild", "child* grandchild"}},
	} {
		t.Run(string(tc.propagation), func(t *testing.T) {
			w, server := NewWorld(NewDice(1, 1), nil), &Server{}
			tops, children := NewResource[*corev1.ConfigMap](w, server, "configmap"), NewResource[*corev1.Secret](w, server, "secret")
			top := tops.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "top"}})
			child := children.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "child", OwnerReferences: ownedBy(top.UID)}})
			children.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "grandchild", OwnerReferences: ownedBy(child.UID)}})
			if w.CollectGarbage() {
				t.Error("something was collected although nothing was deleted")
			}
			tops.Delete(top, tc.propagation)
			for turn, want := range tc.want {
				if turn > 0 {
					w.CollectGarbage()
				}
				var got []string
				w.each(func(_ deleter, object metav1.Object) {
					name := object.GetName()
					if len(object.GetOwnerReferences()) == 0 {
						name += "*"
					}
					if object.GetDeletionTimestamp() != nil {
						name = "(" + name + ")"
					}
					got = append(got, name)
				})
				if now := strings.Join(got, " "); now != want {
					t.Errorf("after %d turns there are %q, want %q", turn, now, want)
				}
			}
		})
	}
}

func ownedBy(uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{Name: "owner", UID: uid}}
}
