// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// storeCommand runs `jobset-apiserver store` as a user, and returns the exit code and the output.
func storeCommand(t *testing.T, kubeconfig string, args ...string) (int, string) {
	t.Helper()
	process := framework.Run(t, plane.Binary, append(append([]string{"store"}, args...), "--kubeconfig="+kubeconfig)...)
	code := process.Wait(t)
	t.Logf("$ jobset-apiserver store %s\n%s(exit code %d)", strings.Join(args, " "), process.Log(), code)
	return code, process.Log()
}

// expectStore runs a command and wants the code and the texts.
func expectStore(t *testing.T, kubeconfig string, args []string, wantCode int, want ...string) {
	t.Helper()
	code, output := storeCommand(t, kubeconfig, args...)
	if code != wantCode {
		t.Errorf("store %s ends with code %d, not %d: %s", strings.Join(args, " "), code, wantCode, output)
	}
	for _, text := range want {
		if !strings.Contains(output, text) {
			t.Errorf("store %s: %q is missing in: %s", strings.Join(args, " "), text, output)
		}
	}
}

// createChildren creates what the controller would for a set: a Job, which has another owner too, a Service and a claim.
func createChildren(t *testing.T, namespace string, set metav1.OwnerReference, other metav1.OwnerReference) {
	t.Helper()
	meta := func(owners ...metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: "child", OwnerReferences: owners}
	}
	kube, options := plane.Kube, metav1.CreateOptions{}
	pod := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}}}
	_, err := kube.BatchV1().Jobs(namespace).Create(t.Context(), &batchv1.Job{ObjectMeta: meta(other, set), Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod}}}, options)
	if err != nil {
		t.Fatal(err)
	}
	_, err = kube.CoreV1().Services(namespace).Create(t.Context(), &corev1.Service{ObjectMeta: meta(set), Spec: corev1.ServiceSpec{ClusterIP: "None"}}, options)
	if err != nil {
		t.Fatal(err)
	}
	_, err = kube.CoreV1().PersistentVolumeClaims(namespace).Create(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: meta(set), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}, options)
	if err != nil {
		t.Fatal(err)
	}
}

// ownersOf returns the UIDs of the owners of the Job, the Service and the claim.
func ownersOf(t *testing.T, namespace string) (uids []types.UID) {
	t.Helper()
	kube, options := plane.Kube, metav1.GetOptions{}
	job, jobErr := kube.BatchV1().Jobs(namespace).Get(t.Context(), "child", options)
	service, serviceErr := kube.CoreV1().Services(namespace).Get(t.Context(), "child", options)
	claim, claimErr := kube.CoreV1().PersistentVolumeClaims(namespace).Get(t.Context(), "child", options)
	for _, err := range []error{jobErr, serviceErr, claimErr} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, child := range []metav1.Object{job, service, claim} {
		for _, owner := range child.GetOwnerReferences() {
			uids = append(uids, owner.UID)
		}
	}
	return uids
}

// TestStoreCommands is the story of an installation whose store is lost: the server refuses an empty one, an
// administrator releases the Jobs, accepts the store, and the server serves.
func TestStoreCommands(t *testing.T) {
	tier.OnRequest(t, "stops and starts servers on one store")
	newInstallation(t)
	admin, err := plane.Kubeconfig("store-admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	nobody, err := plane.Kubeconfig("store-nobody")
	if err != nil {
		t.Fatal(err)
	}
	expectStore(t, admin, []string{"status"}, 3, "State:   NoWitness, ")
	server := plane.StartServer(t, withWitness(framework.Embedded(filepath.Join(framework.ShortDir(t), "data"))...)...)
	e := newEnv(t, server, server.Config(t))
	set := e.create(t, jobSet("lost"))
	namespace, err := plane.Kube.CoreV1().Namespaces().Get(t.Context(), e.namespace, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: namespace.Name, UID: namespace.UID}
	createChildren(t, e.namespace, *metav1.NewControllerRef(set, jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet")), other)
	expectStore(t, admin, []string{"status"}, 0, "State:   Serving, ")
	expectStore(t, admin, []string{"release-orphans"}, 1, "error: no owners are lost: ")
	expectStore(t, admin, []string{"accept", "--uuid=a", "--revision=0"}, 1, "error: no server refuses a store; the store of this cluster is ")
	server.Stop(t)

	server = launchRefused(t, framework.Embedded(filepath.Join(framework.ShortDir(t), "other"))...)
	refusal := awaitRefusal(t, witness.ReasonEmptyStore)
	if refusal.JobsAtStake != 1 || refusal.ClaimsAtStake != 1 {
		t.Errorf("the refusal is %+v", refusal)
	}
	expectStore(t, nobody, []string{"status"}, 1, `error: configmaps "jobset-apiserver-store" is forbidden: User "store-nobody" cannot get resource "configmaps"`)
	expectStore(t, admin, []string{"status"}, 2, "State:        Refused, ", "Reason:       EmptyStore\n", "At stake:     1 Job ("+e.namespace+"/child), 1 PersistentVolumeClaim and 1 Service\n")
	expectStore(t, admin, []string{"status", "-o", "jsonpath={.refusal.newUUID}"}, 2, refusal.NewUUID)

	revision := strconv.FormatInt(refusal.Revision, 10)
	accept := []string{"accept", "--uuid=" + refusal.NewUUID, "--revision=" + revision}
	expectStore(t, admin, accept, 1, "error: --abandon-jobs: the garbage collector will delete 1 Job ("+e.namespace+"/child), 1 PersistentVolumeClaim and 1 Service. ")
	expectStore(t, admin, []string{"accept", "--uuid=" + record(t).UUID, "--revision=" + revision}, 1, "error: --uuid: must be "+refusal.NewUUID)
	changeRecord(t, func(r *witness.Record) {
		r.Accepted = &witness.Acceptance{NewUUID: refusal.NewUUID, Revision: refusal.Revision + 1, AbandonJobs: true}
	})
	expectStore(t, admin, []string{"status"}, 2, ": without effect, what is refused has UUID "+refusal.NewUUID+" at revision "+revision+"\n")

	owned := ownersOf(t, e.namespace)
	expectStore(t, admin, []string{"release-orphans", "--dry-run=client"}, 0, "1 Job, 1 PersistentVolumeClaim, 1 Service released (dry run)\n")
	expectStore(t, admin, []string{"release-orphans", "--dry-run=server"}, 0, "1 Job, 1 PersistentVolumeClaim, 1 Service released (server dry run)\n")
	if got := ownersOf(t, e.namespace); len(got) != 4 || len(owned) != 4 {
		t.Errorf("owners after trying: %v, before: %v", got, owned)
	}
	expectStore(t, nobody, []string{"release-orphans"}, 1, " is forbidden: ")
	expectStore(t, admin, []string{"release-orphans"}, 0, "job/child released in namespace "+e.namespace+"\n", "service/child released in namespace "+e.namespace+"\n",
		"persistentvolumeclaim/child released in namespace "+e.namespace+"\n", "1 Job, 1 PersistentVolumeClaim, 1 Service released\n")
	if got := ownersOf(t, e.namespace); len(got) != 1 || got[0] != other.UID {
		t.Errorf("owners: %v, want %s", got, other.UID)
	}
	expectStore(t, admin, []string{"release-orphans"}, 0, "0 objects released\n")

	if code, body := server.Get(t, "/apis"); code != http.StatusServiceUnavailable {
		t.Errorf("/apis answers %d before the store is accepted: %s", code, body)
	}
	expectStore(t, admin, append(accept, "--dry-run=server"), 0, "accepted (server dry run)\n")
	expectStore(t, admin, accept, 0, "store "+refusal.NewUUID+" at revision "+revision+" accepted\n")
	server.AwaitReady(t)
	expectStore(t, admin, []string{"status"}, 0, "State:      Serving, ", "Restored:   accepted by an administrator at ")
	expectStore(t, admin, accept, 0, " accepted\n")
	if got := ptr.Deref(record(t), witness.Record{}); got.UUID != refusal.NewUUID || got.Accepted != nil {
		t.Errorf("the record is %+v", got)
	}
	e = newEnv(t, server, server.Config(t))
	e.create(t, jobSet("next"))
}
