// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/install"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
)

// valid returns a set as the server sees it, after defaulting.
func valid(t *testing.T) *disaggregatedset.DisaggregatedSet {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	ds := &disaggregatedsetv1.DisaggregatedSet{ObjectMeta: metav1.ObjectMeta{Name: "llm", Namespace: "ml"}}
	for _, name := range []string{"prefill", "decode"} {
		role := disaggregatedsetv1.DisaggregatedRoleSpec{Name: name}
		role.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers = []corev1.Container{{Name: "worker", Image: "nginx"}}
		ds.Spec.Roles = append(ds.Spec.Roles, role)
	}
	scheme.Default(ds)
	hub := &disaggregatedset.DisaggregatedSet{}
	if err := scheme.Convert(ds, hub, nil); err != nil {
		t.Fatal(err)
	}
	return hub
}

type (
	set  = disaggregatedset.DisaggregatedSet
	role = disaggregatedset.DisaggregatedRoleSpec
)

// rolling returns a change of the rolling update of the first role.
func rolling(c leaderworkerset.RollingUpdateConfiguration) func(*set) {
	return func(ds *set) { ds.Spec.Roles[0].Spec.RolloutStrategy.RollingUpdateConfiguration = &c }
}

func number(n int) *intstr.IntOrString      { return ptr.To(intstr.FromInt(n)) }
func share(text string) *intstr.IntOrString { return ptr.To(intstr.FromString(text)) }

func scaledByOthers(ds *set, index int) *role {
	ds.Spec.Roles[index].Scaling = &disaggregatedset.RoleScaling{Mode: disaggregatedset.RoleScalingExternal}
	return &ds.Spec.Roles[index]
}

func placed(kind disaggregatedset.PlacementPolicyType, topology string) func(*set) {
	return func(ds *set) {
		ds.Spec.PlacementPolicy = &disaggregatedset.PlacementPolicy{Type: kind, Topology: topology}
	}
}

// The rows of the reference. An empty want means that the change is accepted.
func TestValidate(t *testing.T) {
	exclusive := map[string]string{"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}
	subgroups := map[string]string{"leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology": "rack"}
	cases := map[string]struct {
		change func(*set)
		want   string
	}{
		"two roles":         {func(*set) {}, ""},
		"one role":          {func(ds *set) { ds.Spec.Roles = ds.Spec.Roles[:1] }, "spec.roles: Invalid"},
		"no role":           {func(ds *set) { ds.Spec.Roles = nil }, "spec.roles: Invalid"},
		"eleven roles":      {func(ds *set) { ds.Spec.Roles = make([]role, 11) }, "spec.roles: Too many"},
		"a name twice":      {func(ds *set) { ds.Spec.Roles[1].Name = "prefill" }, "spec.roles[1]: Duplicate"},
		"no name":           {func(ds *set) { ds.Spec.Roles[0].Name = "" }, "spec.roles[0].name: Invalid"},
		"upper case":        {func(ds *set) { ds.Spec.Roles[0].Name = "Prefill" }, "spec.roles[0].name: Invalid"},
		"a dash at the end": {func(ds *set) { ds.Spec.Roles[0].Name = "prefill-" }, "spec.roles[0].name: Invalid"},
		"unknown mode": {
			func(ds *set) { scaledByOthers(ds, 0).Scaling.Mode = "Auto" }, "spec.roles[0].scaling.mode: Unsupported",
		},
		"no containers": {
			func(ds *set) { ds.Spec.Roles[0].Spec.LeaderWorkerTemplate.WorkerTemplate = corev1.PodTemplateSpec{} },
			"spec.roles[0].spec.leaderWorkerTemplate.workerTemplate: Required",
		},
		"100 slices": {func(ds *set) { ds.Spec.Slices = ptr.To[int32](100) }, ""},
		"101 slices": {func(ds *set) { ds.Spec.Slices = ptr.To[int32](101) }, "spec.slices: Invalid"},
		"no slices":  {func(ds *set) { ds.Spec.Slices = ptr.To[int32](0) }, "spec.slices: Invalid"},
		"slices of a role that is scaled": {
			func(ds *set) { scaledByOthers(ds, 0); ds.Spec.Slices = ptr.To[int32](2) }, "spec.slices: Forbidden",
		},
		"OnDelete": {
			func(ds *set) { ds.Spec.Roles[0].Spec.RolloutStrategy.Type = "OnDelete" }, "spec.roles[0].spec.rolloutStrategy.type: Unsupported",
		},
		"a partition": {
			rolling(leaderworkerset.RollingUpdateConfiguration{Partition: ptr.To[int32](1), MaxUnavailable: number(1)}),
			"spec.roles[0].spec.rolloutStrategy.rollingUpdateConfiguration.partition: Forbidden",
		},
		"partition 0": {rolling(leaderworkerset.RollingUpdateConfiguration{Partition: ptr.To[int32](0), MaxUnavailable: number(1)}), ""},
		"percentages": {rolling(leaderworkerset.RollingUpdateConfiguration{MaxSurge: share("25%"), MaxUnavailable: share("0%")}), ""},
		"neither": {
			rolling(leaderworkerset.RollingUpdateConfiguration{MaxSurge: number(0), MaxUnavailable: number(0)}),
			"spec.roles[0].spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable: Invalid",
		},
		"neither of one replica": {
			rolling(leaderworkerset.RollingUpdateConfiguration{MaxSurge: number(0), MaxUnavailable: share("50%")}), "maxUnavailable: Invalid",
		},
		"neither while stopped": {
			func(ds *set) {
				rolling(leaderworkerset.RollingUpdateConfiguration{MaxSurge: number(0), MaxUnavailable: number(0)})(ds)
				ds.Spec.Roles[0].Spec.Replicas, ds.Spec.Roles[1].Spec.Replicas = ptr.To[int32](0), ptr.To[int32](0)
			}, "",
		},
		"negative":                   {rolling(leaderworkerset.RollingUpdateConfiguration{MaxSurge: number(-1), MaxUnavailable: number(1)}), "maxSurge: Invalid"},
		"101%":                       {rolling(leaderworkerset.RollingUpdateConfiguration{MaxSurge: share("101%"), MaxUnavailable: number(1)}), "maxSurge: Invalid"},
		"no share":                   {rolling(leaderworkerset.RollingUpdateConfiguration{MaxSurge: share("3"), MaxUnavailable: number(1)}), "maxSurge: Invalid"},
		"a sign":                     {rolling(leaderworkerset.RollingUpdateConfiguration{MaxSurge: share("+3%"), MaxUnavailable: number(1)}), "maxSurge: Invalid"},
		"placement":                  {placed(disaggregatedset.PlacementExclusiveSlice, "example.com/rack"), ""},
		"no placement":               {placed(disaggregatedset.PlacementNone, ""), ""},
		"placement without topology": {placed(disaggregatedset.PlacementExclusiveTopology, ""), "spec.placementPolicy.topology: Required"},
		"unknown placement":          {placed("Exclusive", "rack"), "spec.placementPolicy.type: Unsupported"},
		"placement by no label":      {placed(disaggregatedset.PlacementExclusiveSlice, "a b"), "spec.placementPolicy.topology: Invalid"},
		"an exclusive role":          {func(ds *set) { ds.Spec.Roles[0].Annotations = exclusive }, ""},
		"an exclusive placed role": {func(ds *set) {
			ds.Spec.Roles[0].Annotations = exclusive
			placed(disaggregatedset.PlacementExclusiveSlice, "rack")(ds)
		}, "spec.roles[0]: Forbidden"},
		"an exclusive placed subgroup": {
			func(ds *set) {
				ds.Spec.Roles[1].Spec.LeaderWorkerTemplate.WorkerTemplate.Annotations = subgroups
				placed(disaggregatedset.PlacementExclusiveSlice, "rack")(ds)
			}, "spec.roles[1]: Forbidden",
		},
		"an exclusive placed leader": {
			func(ds *set) {
				leader := ds.Spec.Roles[1].Spec.LeaderWorkerTemplate.WorkerTemplate.DeepCopy()
				leader.Annotations = exclusive
				ds.Spec.Roles[1].Spec.LeaderWorkerTemplate.LeaderTemplate = leader
				placed(disaggregatedset.PlacementExclusiveTopology, "rack")(ds)
			}, "spec.roles[1]: Forbidden",
		},
		"one role stopped": {func(ds *set) { ds.Spec.Roles[0].Spec.Replicas = ptr.To[int32](0) }, "spec: Invalid"},
		"both stopped": {
			func(ds *set) {
				ds.Spec.Roles[0].Spec.Replicas, ds.Spec.Roles[1].Spec.Replicas = ptr.To[int32](0), ptr.To[int32](0)
			}, "",
		},
		"one stopped that is scaled": {func(ds *set) { scaledByOthers(ds, 0).Spec.Replicas = ptr.To[int32](0) }, ""},
		"too many replicas":          {func(ds *set) { ds.Spec.Roles[0].Spec.Replicas = ptr.To[int32](1000001) }, "spec.roles[0].spec.replicas: Invalid"},
		"unknown startup policy":     {func(ds *set) { ds.Spec.Roles[0].Spec.StartupPolicy = "Soon" }, "spec.roles[0].spec.startupPolicy: Unsupported"},
		"restart policy Default": {
			func(ds *set) {
				ds.Spec.Roles[0].Spec.LeaderWorkerTemplate.RestartPolicy = leaderworkerset.RestartPolicyDefault
			}, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			created, stored := valid(t), valid(t)
			tc.change(created)
			expect(t, ValidateDisaggregatedSetCreate(created), tc.want)
			stored.Name = created.Name
			if created.Name != "llm" {
				return // a stored set has the same name
			}
			expect(t, ValidateDisaggregatedSetUpdate(created, stored), tc.want)
			expect(t, ValidateDisaggregatedSetUpdate(created, created.DeepCopy()), "") // what is stored stays accepted
		})
	}
}

func expect(t *testing.T, errs field.ErrorList, want string) {
	t.Helper()
	switch {
	case want == "" && len(errs) > 0:
		t.Errorf("got %v, want none", errs)
	case want != "" && (len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), want)):
		t.Errorf("got %v, want %s", errs, want)
	}
}

// A set with more objects than a LeaderWorkerSet may have is refused as a whole, with one cause.
func TestObjectsAreBounded(t *testing.T) {
	ds := valid(t)
	for i := range ds.Spec.Roles {
		containers := make([]corev1.Container, 6)
		for j := range containers {
			containers[j].Env = make([]corev1.EnvVar, 2000)
		}
		ds.Spec.Roles[i].Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers = containers
	}
	errs := ValidateDisaggregatedSetCreate(ds)
	if len(errs) != 1 || errs[0].Field != "spec" || !strings.Contains(errs[0].Detail, "must have at most 20000 objects in all of its lists together") {
		t.Errorf("got %d errors, the first one %v", len(errs), errs[0])
	}
	expect(t, ValidateDisaggregatedSetUpdate(ds, valid(t)), "spec: Invalid")
	if errs := ValidateDisaggregatedSetUpdate(ds, ds.DeepCopy()); len(errs) > 0 {
		t.Errorf("a stored set is refused: %v", errs[0])
	}
	ds = valid(t)
	ds.Spec.Roles[1].Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers = make([]corev1.Container, 2001)
	expect(t, ValidateDisaggregatedSetCreate(ds), "spec.roles[1].spec.leaderWorkerTemplate.workerTemplate.spec.containers: Too many")
}

// Each slice has LeaderWorkerSets of its own with all objects of the templates. A small request must not become a hundred large objects.
func TestObjectsOfSlicesAreBounded(t *testing.T) {
	sized := func(slices int32, objects int) *set {
		ds := valid(t)
		ds.Spec.Slices = &slices
		for role := range 2 { // a single list may have half of them only
			list := &ds.Spec.Roles[role].Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0].Env
			for i := range objects / 2 {
				*list = append(*list, corev1.EnvVar{Name: "E" + strconv.Itoa(i)})
			}
		}
		return ds
	}
	for name, tc := range map[string]struct {
		ds   *set
		want string
	}{
		"100 slices of few":  {sized(100, 300), ""},
		"100 slices of many": {sized(100, 3900), "spec.slices: Invalid value: must have at most 100000 objects in the lists of all slices together"},
		"10 slices of many":  {sized(10, 3900), ""},
		"slices below zero":  {sized(-2147483648, 3900), "spec.slices: Invalid value: -2147483648: must be from 1 to 100"},
		"slices above all":   {sized(2147483647, 3900), "must have at most 100000 objects"},
	} {
		t.Run(name, func(t *testing.T) { expect(t, ValidateDisaggregatedSetCreate(tc.ds), tc.want) })
	}
	if errs := ValidateDisaggregatedSetUpdate(sized(100, 3900), sized(10, 3900)); len(errs) != 1 {
		t.Errorf("more slices: %v", errs)
	}
}

func TestWarnings(t *testing.T) {
	ds := valid(t)
	ds.Spec.Roles[0].Spec.Replicas = ptr.To[int32](3)
	if got := Warnings(ds); len(got) > 0 {
		t.Errorf("static roles: got %q", got)
	}
	scaledByOthers(ds, 0)
	scaledByOthers(ds, 1)
	const want = "spec.roles[0].spec.replicas: 3 is ignored because scaling.mode is External; scale disaggregatedsetrolescaler llm-prefill instead"
	if got := Warnings(ds); len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestValidateStatus(t *testing.T) {
	ds := valid(t)
	prev := ds.DeepCopy()
	ds.Status.RoleStatuses = []disaggregatedset.RoleStatus{{Name: "prefill", Replicas: 1}, {Name: "decode"}}
	expect(t, ValidateDisaggregatedSetStatusUpdate(ds, prev), "")
	ds.Status.RoleStatuses[1] = disaggregatedset.RoleStatus{Name: "prefill", ReadyReplicas: -1}
	expect(t, ValidateDisaggregatedSetStatusUpdate(ds, prev), "status.roleStatuses[1]: Duplicate")
	expect(t, ValidateDisaggregatedSetStatusUpdate(ds, prev), "status.roleStatuses[1].readyReplicas: Invalid")
	ds.Status.RoleStatuses = make([]disaggregatedset.RoleStatus, 101)
	expect(t, ValidateDisaggregatedSetStatusUpdate(ds, prev), "status.roleStatuses: Too many")
}

func TestValidateScaler(t *testing.T) {
	scaler := func(replicas int32) *disaggregatedset.DisaggregatedSetRoleScaler {
		return &disaggregatedset.DisaggregatedSetRoleScaler{
			ObjectMeta: metav1.ObjectMeta{Name: "llm-prefill", Namespace: "ml"}, Spec: disaggregatedset.DisaggregatedSetRoleScalerSpec{Replicas: replicas},
		}
	}
	for replicas, want := range map[int32]string{0: "", 7: "", -1: "spec.replicas: Invalid", 1000001: "spec.replicas: Invalid"} {
		expect(t, ValidateScalerCreate(scaler(replicas)), want)
		expect(t, ValidateScalerUpdate(scaler(replicas), scaler(1)), want)
	}
	next := scaler(1)
	next.Status.Replicas = -1
	expect(t, ValidateScalerStatusUpdate(next, scaler(1)), "status.replicas: Invalid")
	next.Status = disaggregatedset.DisaggregatedSetRoleScalerStatus{Selector: strings.Repeat("a", 5000)}
	expect(t, ValidateScalerStatusUpdate(next, scaler(1)), "status.selector")
}
