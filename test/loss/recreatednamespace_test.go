// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// recreatedNamespace is a namespace that is deleted while its sets cannot be, and created again.
type recreatedNamespace struct {
	*stage
	name string
	uid  types.UID
}

// newRecreatedNamespace creates a namespace with a set that runs.
func (s *stage) newRecreatedNamespace(t *testing.T) *recreatedNamespace {
	t.Helper()
	r := &recreatedNamespace{stage: s, name: s.cluster.namespace(t, "recreated")}
	s.create(t, r.name, 0, 1)
	s.running(t, r.name, 1)
	return r
}

// recreate deletes the namespace while the API of the set is not registered, and creates the next one of its name.
func (r *recreatedNamespace) recreate(t *testing.T) {
	t.Helper()
	r.deleteNamespace(t, r.name)
	r.namespaceEnds(t, r.name)
	namespace, err := r.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.uid = namespace.UID
}

// held wants the set not to run in the new namespace, unlike a new set, until a user says that it belongs there.
func (r *recreatedNamespace) held(t *testing.T) {
	t.Helper()
	sets := r.JobSets.JobsetV1alpha2().JobSets(r.name)
	r.condition(t, metav1.ConditionTrue)
	r.create(t, r.name, 1, 2)
	r.running(t, r.name, 1)
	if found, err := r.children(t.Context(), r.name); err != nil || len(found.jobs) != 1 {
		t.Errorf("the set before has Jobs: %+v (%v)", found, err)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, namespaceuid.Annotation, r.uid)
	if _, err := sets.Patch(t.Context(), setName(0), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	r.running(t, r.name, 2)
	r.condition(t, metav1.ConditionFalse)
}

func (r *recreatedNamespace) condition(t *testing.T, status metav1.ConditionStatus) {
	t.Helper()
	framework.Eventually(t, fmt.Sprintf("the condition is %s", status), func(ctx context.Context) error {
		set, err := r.JobSets.JobsetV1alpha2().JobSets(r.name).Get(ctx, setName(0), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if c := meta.FindStatusCondition(set.Status.Conditions, namespaceuid.Condition); c == nil || c.Status != status {
			return fmt.Errorf("the conditions are %+v", set.Status.Conditions)
		}
		return nil
	})
}
