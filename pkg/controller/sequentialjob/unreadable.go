// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/sequentialjob/plan"
)

// Unreadable returns the JobSets that the server cannot read, and that the sequence controls or may control.
func (c caches) Unreadable(sj *batchv1alpha1.SequentialJob) (list []plan.Unreadable, err error) {
	found, err := c.jobSets.Unreadable(sj.Namespace)
	for i := range found {
		if p := &found[i]; mayBelong(p, sj) {
			child, known := p.Part.(*watchedChild)
			list = append(list, plan.Unreadable{Name: p.Name, UID: uidOf(p), Cause: p.Cause, Ended: known && child.End != ""})
		}
	}
	return list, err
}

// uidOf returns the UID of an object that cannot be read, from its metadata or from before; empty if it is not known.
func uidOf(p *informers.Placeholder) types.UID {
	if child, ok := p.Part.(*watchedChild); ok && p.UID == "" {
		return child.UID
	}
	return p.UID
}

// mayBelong returns whether a JobSet that cannot be read is a child of the sequence, or may be one: of one whose metadata
// cannot be read only the name is known.
func mayBelong(p *informers.Placeholder, sj *batchv1alpha1.SequentialJob) bool {
	if child, ok := p.Part.(*watchedChild); ok && child.owner != "" {
		return child.owner == sj.UID
	}
	if p.UID == "" {
		return plan.MayBeChild(sj, p.Name)
	}
	owner := sequenceOf(&metav1.ObjectMeta{OwnerReferences: p.OwnerReferences})
	return owner != nil && owner.UID == sj.UID
}

// onUnreadable looks at the sequences that may have a child that cannot be read, or could not be read before.
func (c *Controller) onUnreadable(p informers.Placeholder) {
	for _, obj := range c.caches.sequentialJobs.List() {
		if sj, ok := obj.(*batchv1alpha1.SequentialJob); ok && sj.Namespace == p.Namespace && mayBelong(&p, sj) {
			c.queue.Add(cache.MetaObjectToName(sj))
		}
	}
}
