// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package collisions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
)

// disaggregatedSet warns of LeaderWorkerSets and scalers of others that have the names of LeaderWorkerSets and scalers of a set.
func (l *look) disaggregatedSet(ds *disaggregatedset.DisaggregatedSet) {
	l.scalers(ds)
	var versioned disaggregatedsetv1.DisaggregatedSet
	if err := disaggregatedsetv1.Convert_disaggregatedset_DisaggregatedSet_To_v1_DisaggregatedSet(ds, &versioned, nil); err != nil {
		return
	}
	revision, err := helper.Revision(&versioned)
	if err != nil {
		return
	}
	for slice := range max(ptr.Deref(ds.Spec.Slices, 1), 1) {
		for i := range ds.Spec.Roles {
			if l.Ends() {
				return
			}
			name := helper.SetName(ds.Name, slice, revision, ds.Spec.Roles[i].Name)
			if set := l.setNamed(name); set != nil && foreign(ds, set) {
				l.Warn("the LeaderWorkerSet %q exists and does not belong to the set; role %q of slice %d waits until it is deleted", name,
					ds.Spec.Roles[i].Name, slice)
			}
		}
	}
}

// foreign returns whether an object stays in the way of a set: the set adopts those that a former set of its name has
// left without a controller.
func foreign(ds *disaggregatedset.DisaggregatedSet, object metav1.Object) bool {
	return !controls(ds, object) && (metav1.GetControllerOfNoCopy(object) != nil ||
		object.GetLabels()[disaggregatedsetv1.SetNameLabelKey] != ds.Name)
}

// scalers warns of scalers of roles that others have.
func (l *look) scalers(ds *disaggregatedset.DisaggregatedSet) {
	for i := range ds.Spec.Roles {
		role := &ds.Spec.Roles[i]
		if role.Scaling == nil || role.Scaling.Mode != disaggregatedset.RoleScalingExternal {
			continue
		}
		name := helper.ScalerName(ds.Name, role.Name)
		if scaler := l.Read(disaggregatedset.Resource("disaggregatedsetrolescalers"), name); scaler != nil && foreign(ds, scaler) {
			l.Warn("the DisaggregatedSetRoleScaler %q exists and does not belong to the set; role %q waits until it is deleted", name, role.Name)
		}
	}
}
