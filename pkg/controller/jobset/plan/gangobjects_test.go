// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
)

// TestGroupObjects shows what is asked of each version of the API.
func TestGroupObjects(t *testing.T) {
	prioritized := func(rj *jobsetv1alpha2.ReplicatedJob) {
		rj.Template.Spec.Parallelism = ptr.To[int32](4)
		rj.Template.Spec.Template.Spec.PriorityClassName = "high"
	}
	all := func(s *jobsetv1alpha2.JobSetSchedulingConfiguration) {
		e := entry(true, "w")
		e.Job = &jobsetv1alpha2.JobScheduling{
			SchedulingPolicy:      &jobsetv1alpha2.SchedulingPolicy{Gang: &jobsetv1alpha2.GangSchedulingPolicy{MinCount: ptr.To[int32](3)}},
			SchedulingConstraints: &jobsetv1alpha2.SchedulingConstraints{Topology: []jobsetv1alpha2.TopologyConstraint{{Key: "rack"}}},
			DisruptionMode:        &jobsetv1alpha2.DisruptionMode{All: &jobsetv1alpha2.AllDisruptionMode{}},
			ResourceClaims:        []jobsetv1alpha2.SchedulingResourceClaim{{Name: "a", ResourceClaimName: ptr.To("x")}, {Name: "b", ResourceClaimTemplateName: ptr.To("y")}},
		}
		s.ReplicatedJobs = []jobsetv1alpha2.ReplicatedJobScheduling{e}
	}
	basic := func(s *jobsetv1alpha2.JobSetSchedulingConfiguration) {
		s.SchedulingPolicy = &jobsetv1alpha2.SchedulingPolicy{Basic: &jobsetv1alpha2.BasicSchedulingPolicy{}}
		s.DisruptionMode = &jobsetv1alpha2.DisruptionMode{Single: &jobsetv1alpha2.SingleDisruptionMode{}}
	}
	const claims = `"resourceClaims":[{"name":"a","resourceClaimName":"x"},{"name":"b","resourceClaimTemplateName":"y"}],`
	const same = claims + `"schedulingConstraints":{"topology":[{"key":"rack"}]},"schedulingPolicy":{"gang":{"minCount":3}}`
	const owner = `"controllerRef":{"apiGroup":"jobset.x-k8s.io","kind":"JobSet","name":"js"}`
	cases := map[string]struct {
		api        gang.API
		scheduling func(*jobsetv1alpha2.JobSetSchedulingConfiguration)
		want       []string
	}{
		"a gang of all pods": {api: gang.V1beta1, want: []string{
			`Workload js {` + owner + `,"podGroupTemplates":[{"name":"js","priorityClassName":"high","schedulingPolicy":{"gang":{"minCount":4}}}]}`,
			`PodGroup js {"priorityClassName":"high","schedulingPolicy":{"gang":{"minCount":4}},"workloadRef":{"templateName":"js","workloadName":"js"}}`,
		}},
		"all fields": {api: gang.V1alpha3, scheduling: all, want: []string{
			`Workload js {` + owner + `,"podGroupTemplates":[{"disruptionMode":{"all":{}},"name":"w-0","priorityClassName":"high",` + same + `}]}`,
			`PodGroup js-w-0 {"disruptionMode":{"all":{}},"priorityClassName":"high",` + same + `,"workloadRef":{"templateName":"w-0","workloadName":"js"}}`,
		}},
		"all fields in 1.36": {api: gang.V1alpha2, scheduling: all, want: []string{
			`Workload js {` + owner + `,"podGroupTemplates":[{"disruptionMode":"PodGroup","name":"w-0","priorityClassName":"high",` + same + `}]}`,
			`PodGroup js-w-0 {"disruptionMode":"PodGroup","podGroupTemplateRef":{"workload":{"podGroupTemplateName":"w-0","workloadName":"js"}},"priorityClassName":"high",` + same + `}`,
		}},
		"no gang": {api: gang.V1beta1, scheduling: basic, want: []string{
			`Workload js {` + owner + `,"podGroupTemplates":[{"disruptionMode":{"single":{}},"name":"js","priorityClassName":"high","schedulingPolicy":{"basic":{}}}]}`,
			`PodGroup js {"disruptionMode":{"single":{}},"priorityClassName":"high","schedulingPolicy":{"basic":{}},"workloadRef":{"templateName":"js","workloadName":"js"}}`,
		}},
		"no gang in 1.36": {api: gang.V1alpha2, scheduling: basic, want: []string{
			`Workload js {` + owner + `,"podGroupTemplates":[{"disruptionMode":"Pod","name":"js","priorityClassName":"high","schedulingPolicy":{"basic":{}}}]}`,
			`PodGroup js {"disruptionMode":"Pod","podGroupTemplateRef":{"workload":{"podGroupTemplateName":"js","workloadName":"js"}},"priorityClassName":"high","schedulingPolicy":{"basic":{}}}`,
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			js := newSet(with("w", 1, prioritized), scheduling(func(s *jobsetv1alpha2.JobSetSchedulingConfiguration) {
				if tc.scheduling != nil {
					tc.scheduling(s)
				}
			}))
			var got []string
			for _, object := range gang.Objects(tc.api, js) {
				spec, err := json.Marshal(object.Object["spec"])
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, object.GetKind()+" "+short(object.GetName()+" "+string(spec)))
				if v := object.GetAPIVersion(); v != "scheduling.k8s.io/"+string(tc.api) {
					t.Errorf("the version is %s", v)
				}
				if owners := object.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != js.UID || !*owners[0].Controller {
					t.Errorf("the owners are %v", owners)
				}
				if object.GetNamespace() != js.Namespace || object.GetLabels()[jobsetv1alpha2.JobSetNameKey] != js.Name {
					t.Errorf("%s/%s has the labels %v", object.GetNamespace(), object.GetName(), object.GetLabels())
				}
			}
			diff(t, "objects", strings.Join(tc.want, "\n"), strings.Join(got, "\n"))
		})
	}
}

func TestNoGroupsWithoutPods(t *testing.T) {
	js := newSet(with("w", 0), scheduling())
	if objects := gang.Objects(gang.V1beta1, js); len(objects) > 0 {
		t.Errorf("%d objects are made", len(objects))
	}
	o := observe(js)
	o.Grouped = &gang.Observed{API: gang.V1beta1}
	if p := Decide(o); len(p.Groups.Create) > 0 {
		t.Errorf("%d objects are created", len(p.Groups.Create))
	}
}
