// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

const disaggregatedSet = `
apiVersion: disaggregatedset.x-k8s.io/v1
kind: DisaggregatedSet
metadata: {name: a}
spec:
  roles:
  - name: prefill
    spec: {replicas: 2, leaderWorkerTemplate: {workerTemplate: {spec: {containers: [{name: main, image: busybox}]}}}}
  - name: decode
    scaling: {mode: External}
    spec: {leaderWorkerTemplate: {size: 2, workerTemplate: {spec: {containers: [{name: main, image: busybox}]}}}}
`

const roleScaler = `
apiVersion: disaggregatedset.x-k8s.io/v1
kind: DisaggregatedSetRoleScaler
metadata: {name: a}
spec: {replicas: 2}
`

// groupKind is a kind of groups, with what the cases below change.
type groupKind struct {
	resource schema.GroupVersionResource
	manifest string
	// change is a merge patch of the spec, and scale whether there is a scale.
	change string
	scale  bool
}

var groupKinds = []groupKind{
	{leaderworkersetv1.SchemeGroupVersion.WithResource("leaderworkersets"), leaderWorkerSet, `{"spec":{"replicas":1}}`, true},
	{disaggregatedsetv1.SchemeGroupVersion.WithResource("disaggregatedsets"), disaggregatedSet, `{"spec":{"slices":1,"placementPolicy":{"type":"None"}}}`, false},
	{disaggregatedsetv1.SchemeGroupVersion.WithResource("disaggregatedsetrolescalers"), roleScaler, `{"spec":{"replicas":1}}`, true},
}

// groupEnv is a namespace with a client of one kind.
type groupEnv struct {
	*env
	groupKind
	objects dynamic.ResourceInterface
}

// TestAdmissionOfGroups covers what stands before the storage of LeaderWorkerSets, DisaggregatedSets and their scalers,
// at the server itself.
func TestAdmissionOfGroups(t *testing.T) {
	log, flags := auditFlags(t)
	flags = append(flags, "--feature-gates=DisaggregatedSet=true")
	server := plane.StartServer(t, append(framework.Embedded(framework.ShortDir(t)), flags...)...)
	untyped, err := dynamic.NewForConfig(server.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]func(*testing.T, *groupEnv){
		"quota counts them":                        testGroupQuota,
		"a dry run of each verb stores nothing":    testGroupDryRuns,
		"a validating policy refuses writes":       testGroupPolicy,
		"a validating policy refuses a scale":      testScalePolicy,
		"the status and the main resource are two": testGroupStatus,
	} {
		for _, kind := range groupKinds {
			t.Run(name+"/"+kind.resource.Resource, func(t *testing.T) {
				e := newEnv(t, server, server.Config(t))
				test(t, &groupEnv{e, kind, untyped.Resource(kind.resource).Namespace(e.namespace)})
			})
		}
	}
	t.Run("the audit log has who, what and why", func(t *testing.T) { testGroupActionAudit(t, server, log) })
}

func (g *groupEnv) make(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	created, err := g.objects.Create(t.Context(), object(t, g.manifest, name), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func testGroupQuota(t *testing.T, g *groupEnv) {
	counted := corev1.ResourceName("count/" + g.resource.GroupResource().String())
	quotas, hard := plane.Kube.CoreV1().ResourceQuotas(g.namespace), corev1.ResourceList{counted: resource.MustParse("2")}
	quota, err := quotas.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "few"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The quota controller would do this; no controllers run here.
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{counted: resource.MustParse("0")}}
	if _, err := quotas.UpdateStatus(t.Context(), quota, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The first one must be counted, so the server must know the quota.
	framework.Eventually(t, "the quota is enforced", func(ctx context.Context) error {
		if _, err := g.objects.Create(ctx, object(t, g.manifest, "a"), metav1.CreateOptions{}); err != nil {
			return err
		}
		if used := g.used(t, counted); used != 1 {
			if err := g.objects.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
				return err
			}
			return fmt.Errorf("%d are used", used)
		}
		return nil
	})
	g.make(t, "b")
	_, err = g.objects.Create(t.Context(), object(t, g.manifest, "c"), metav1.CreateOptions{})
	if want := fmt.Sprintf("exceeded quota: few, requested: %[1]s=1, used: %[1]s=2, limited: %[1]s=2", counted); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("beyond the quota: %v", err)
	}
	if _, err := g.objects.Patch(t.Context(), "a", types.MergePatchType, []byte(g.change), metav1.PatchOptions{}); err != nil {
		t.Errorf("a change when the quota is used up: %v", err)
	}
}

func testGroupDryRuns(t *testing.T, g *groupEnv) {
	ctx, all := t.Context(), []string{metav1.DryRunAll}
	g.make(t, "a")
	before, err := g.objects.Get(ctx, "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	next := before.DeepCopy()
	next.SetLabels(map[string]string{"changed": "true"})
	applied := object(t, g.manifest, "a")
	applied.SetLabels(map[string]string{"applied": "true"})
	status := []byte(`{"status":{"observedGeneration":7}}`)
	steps := map[string]func() error{
		"create": func() error {
			_, err := g.objects.Create(ctx, object(t, g.manifest, "b"), metav1.CreateOptions{DryRun: all})
			return err
		},
		"update": func() error {
			_, err := g.objects.Update(ctx, next, metav1.UpdateOptions{DryRun: all})
			return err
		},
		"apply": func() error {
			_, err := g.objects.Apply(ctx, "a", applied, metav1.ApplyOptions{DryRun: all, FieldManager: "dry", Force: true})
			return err
		},
		"merge patch": func() error {
			_, err := g.objects.Patch(ctx, "a", types.MergePatchType, []byte(g.change), metav1.PatchOptions{DryRun: all})
			return err
		},
		"strategic merge patch": func() error {
			_, err := g.objects.Patch(ctx, "a", types.StrategicMergePatchType, []byte(g.change), metav1.PatchOptions{DryRun: all})
			return err
		},
		"JSON patch": func() error {
			_, err := g.objects.Patch(ctx, "a", types.JSONPatchType, []byte(`[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`), metav1.PatchOptions{DryRun: all})
			return err
		},
		"patch of the status": func() error {
			_, err := g.objects.Patch(ctx, "a", types.MergePatchType, status, metav1.PatchOptions{DryRun: all}, "status")
			return err
		},
		"delete": func() error { return g.objects.Delete(ctx, "a", metav1.DeleteOptions{DryRun: all}) },
		"deletecollection": func() error {
			return g.objects.DeleteCollection(ctx, metav1.DeleteOptions{DryRun: all}, metav1.ListOptions{})
		},
	}
	if g.scale {
		steps["patch of the scale"] = func() error {
			_, err := g.objects.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"replicas":9}}`), metav1.PatchOptions{DryRun: all}, "scale")
			return err
		}
	}
	for name, step := range steps {
		if err := step(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	list, err := g.objects.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%d objects are left (%v)", len(list.Items), err)
	}
	if diff := cmp.Diff(before.Object, list.Items[0].Object); diff != "" {
		t.Errorf("dry runs changed the object (-before +after):\n%s", diff)
	}
}

func testGroupStatus(t *testing.T, g *groupEnv) {
	ctx := t.Context()
	created := g.make(t, "a")
	body := []byte(`{"metadata":{"labels":{"a":"b"}},"spec":{"replicas":7,"slices":7},"status":{"observedGeneration":5}}`)
	got, err := g.objects.Patch(ctx, "a", types.MergePatchType, body, metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(created.Object["spec"], got.Object["spec"]); diff != "" || len(got.GetLabels()) > 0 || got.GetGeneration() != 1 {
		t.Errorf("the status changed generation %d, labels %v and the spec:\n%s", got.GetGeneration(), got.GetLabels(), diff)
	}
	if n, _, _ := unstructured.NestedInt64(got.Object, "status", "observedGeneration"); n != 5 {
		t.Errorf("status %v", got.Object["status"])
	}
	got, err = g.objects.Patch(ctx, "a", types.MergePatchType, []byte(`{"status":{"observedGeneration":9}}`), metav1.PatchOptions{})
	if n, _, _ := unstructured.NestedInt64(got.Object, "status", "observedGeneration"); err != nil || n != 5 {
		t.Errorf("the main resource changed the status to %v (%v)", got.Object["status"], err)
	}
}

// testGroupActionAudit: the event names the user of an action, the set, and the reason that the user gave.
func testGroupActionAudit(t *testing.T, server *framework.Server, log string) {
	user, err := plane.AddUser("erin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	e := newEnv(t, server, server.Config(t))
	s := &groupSets{e, groupClient(t, server.ConfigOf(t, user), e.namespace)}
	s.createGroups(t, "a", "v1")
	request := &batchv1alpha1.LeaderWorkerSetRestart{Spec: batchv1alpha1.LeaderWorkerSetRestartSpec{Group: ptr.To[int32](3), Reason: "stuck on node 7"}}
	if _, err := s.typed.Restart(t.Context(), "a", request, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	event := auditEvent(t, log, "the restart", func(event *auditv1.Event) bool {
		return event.Verb == "create" && event.ObjectRef.Subresource == "restart" && event.ObjectRef.Namespace == e.namespace
	})
	if event.User.Username != "erin" || event.ObjectRef.Resource != "leaderworkersets" || event.ObjectRef.Name != "a" {
		t.Errorf("user %s, object %+v", event.User.Username, event.ObjectRef)
	}
	if request := string(event.RequestObject.Raw); !strings.Contains(request, "stuck on node 7") || !strings.Contains(request, `"group":3`) {
		t.Errorf("the request is %s", request)
	}
	if answer := string(event.ResponseObject.Raw); !strings.Contains(answer, "the restart of group 3 was requested") {
		t.Errorf("the answer is %s", answer)
	}
}
