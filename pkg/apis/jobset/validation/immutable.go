// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
)

// immutableJobs explains why a list of replicatedJobs is refused: what differs first, and what to do.
func immutableJobs(next, prev []jobset.ReplicatedJob, suspended bool, opts gates.Gates) string {
	where, directive := firstDifference(next, prev, opts)
	advice := "create a new JobSet to change it"
	if directive && !suspended {
		advice = "set spec.suspend to true to change it"
	}
	return fmt.Sprintf("%s: %s must not change after creation; %s", apivalidation.FieldImmutableErrorMsg, where, advice)
}

// firstDifference names the first field that differs between two lists, and reports whether it is one that may change
// while the set is suspended.
func firstDifference(next, prev []jobset.ReplicatedJob, opts gates.Gates) (where string, directive bool) {
	if len(next) != len(prev) {
		return fmt.Sprintf("the number of replicatedJobs (%d)", len(prev)), false
	}
	for i := range next {
		a, b := &next[i], &prev[i]
		job := fmt.Sprintf("[%d].", i)
		switch {
		case a.Name != b.Name:
			return job + "name", false
		case !equality.Semantic.DeepEqual(a.GroupName, b.GroupName):
			return job + "groupName", false
		case !equality.Semantic.DeepEqual(a.Replicas, b.Replicas):
			return job + "replicas", false
		case !equality.Semantic.DeepEqual(a.DependsOn, b.DependsOn):
			return job + "dependsOn", false
		case !equality.Semantic.DeepEqual(a.Template.ObjectMeta, b.Template.ObjectMeta):
			return job + "template.metadata", false
		}
		where, directive = podDifference(a, b, opts)
		if where != "" {
			return job + "template.spec." + where, directive
		}
	}
	return "the list", false
}

func podDifference(a, b *jobset.ReplicatedJob, opts gates.Gates) (where string, directive bool) {
	if name := differingField(a.Template.Spec, b.Template.Spec); name != "template" {
		return name, false
	}
	pa, pb := &a.Template.Spec.Template, &b.Template.Spec.Template
	if name := differingField(pa.ObjectMeta, pb.ObjectMeta); name != "" {
		return "template.metadata." + name, name == "labels" || name == "annotations"
	}
	name, path := differingField(pa.Spec, pb.Spec), "template.spec."
	switch name {
	case "nodeSelector", "tolerations", "schedulingGates":
		return path + name, true
	case "containers":
		item, resources := containerDifference(pa.Spec.Containers, pb.Spec.Containers)
		return path + name + item, resources && opts.MutablePodResourcesForSuspendedJobSets
	case "initContainers":
		item, resources := containerDifference(pa.Spec.InitContainers, pb.Spec.InitContainers)
		return path + name + item, resources && opts.MutablePodResourcesForSuspendedJobSets
	}
	return path + name, false
}

// differingField returns the JSON name of the first field of two structs of one type that differs, or "". The pod
// template of a Job comes last.
func differingField(a, b any) string {
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	last := ""
	for i := range va.NumField() {
		if equality.Semantic.DeepEqual(va.Field(i).Interface(), vb.Field(i).Interface()) {
			continue
		}
		name, _, _ := strings.Cut(va.Type().Field(i).Tag.Get("json"), ",")
		if name != "template" {
			return name
		}
		last = name
	}
	return last
}
