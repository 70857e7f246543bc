// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// subject is a kind that upstream serves by a CustomResourceDefinition.
type subject struct {
	resource schema.GroupVersionResource
	kind     string
	// probe is the spec of a valid object in JSON: servers look at whether writes are refused only after they have validated one.
	probe string
}

// Specs of probes.
const (
	template   = `{"spec":{"containers":[{"name":"never-started","image":"none"}]}}`
	jobsProbe  = `{"replicatedJobs":[{"name":"a","template":{"spec":{"template":` + template + `}}}]}`
	lwsProbe   = `{"leaderWorkerTemplate":{"workerTemplate":` + template + `}}`
	rolesProbe = `{"roles":[{"name":"a","spec":` + lwsProbe + `},{"name":"b","spec":` + lwsProbe + `}]}`
	scaleProbe = `{"replicas":1}`
)

// subjects are all of them, in the order in which they move: owners before what they own, which is written back with the new UIDs of
// its owners.
var subjects = []subject{
	{jobsetv1alpha2.SchemeGroupVersion.WithResource("jobsets"), "JobSet", jobsProbe},
	{disaggregatedsetv1.SchemeGroupVersion.WithResource("disaggregatedsets"), "DisaggregatedSet", rolesProbe},
	{disaggregatedsetv1.SchemeGroupVersion.WithResource("disaggregatedsetrolescalers"), "DisaggregatedSetRoleScaler", scaleProbe},
	{leaderworkersetv1.SchemeGroupVersion.WithResource("leaderworkersets"), "LeaderWorkerSet", lwsProbe},
}

// definition is the name of the CustomResourceDefinition.
func (s subject) definition() string { return s.resource.GroupResource().String() }

// apiService is the name of the APIService that routes the group.
func (s subject) apiService() string { return s.resource.Version + "." + s.resource.Group }

// probeObject returns a valid object, to be created in dry runs only.
func (s subject) probeObject() (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	var spec map[string]any
	if err := json.Unmarshal([]byte(s.probe), &spec); err != nil {
		return nil, err
	}
	object.Object["spec"] = spec
	object.SetGroupVersionKind(s.resource.GroupVersion().WithKind(s.kind))
	object.SetNamespace(metav1.NamespaceDefault)
	object.SetName("migration-probe")
	return object, nil
}

// returning is the resource in the version through which its CustomResourceDefinition takes objects while the group is routed to
// jobset-apiserver.
func (s subject) returning() schema.GroupVersionResource {
	return s.resource.GroupResource().WithVersion(returnVersion)
}
