// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// remote returns what runs a migration to the server in a Job of the cluster.
func (f *fixture) remote() *remote {
	return &remote{kube: f.kube, out: &f.out, direction: ToServer, freezeFor: 5 * time.Minute, every: time.Millisecond}
}

// add adds objects to the cluster.
func (f *fixture) add(objects ...runtime.Object) {
	f.Helper()
	for _, object := range objects {
		if err := f.kube.Tracker().Add(object); err != nil {
			f.Fatal(err)
		}
	}
}

// job returns a Job of --in-cluster that runs a direction.
func job(uid types.UID, direction Direction, conditions ...batchv1.JobCondition) *batchv1.Job {
	meta := accessMeta()
	meta.Namespace, meta.UID, meta.Annotations = systemNamespace, uid, map[string]string{directionKey: string(direction)}
	return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{BackoffLimit: ptr.To[int32](6)}, Status: batchv1.JobStatus{Conditions: conditions}}
}

func condition(kind batchv1.JobConditionType, reason, message string) batchv1.JobCondition {
	return batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message}
}

// statefulSet returns the StatefulSet of a server with an image.
func statefulSet(image string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "jobset-apiserver", Labels: map[string]string{"app.kubernetes.io/name": "jobset-apiserver"}},
		Spec: appsv1.StatefulSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}},
			NodeSelector:     map[string]string{"pool": "system"},
			Tolerations:      []corev1.Toleration{{Key: "system", Operator: corev1.TolerationOpExists}},
			Containers:       []corev1.Container{{Name: "proxy"}, {Name: "apiserver", Image: image, ImagePullPolicy: corev1.PullNever}},
		}}},
	}
}

// access says which permissions of the Job exist.
func (f *fixture) access() string {
	_, noAccount := f.kube.CoreV1().ServiceAccounts(systemNamespace).Get(f.Context(), jobName, metav1.GetOptions{})
	_, noBinding := f.kube.RbacV1().ClusterRoleBindings().Get(f.Context(), jobName, metav1.GetOptions{})
	var found []string
	if noAccount == nil {
		found = append(found, "account")
	}
	if noBinding == nil {
		found = append(found, "binding")
	}
	return strings.Join(found, " and ")
}

func expectError(t *testing.T, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

func TestCreateJob(t *testing.T) {
	f := newFixture(t)
	f.add(statefulSet("registry.example.com:5000/team/jobset-apiserver:v1.2.3"))
	if _, err := f.remote().start(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := f.kube.BatchV1().Jobs("jobset-system").Get(t.Context(), "jobset-apiserver-migration", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Annotations["migration.jobset-apiserver.io/direction"] != "to-server" || *got.Spec.BackoffLimit != 6 || *got.Spec.TTLSecondsAfterFinished != 86400 {
		t.Errorf("annotations %v, limit %d, kept for %d s", got.Annotations, *got.Spec.BackoffLimit, *got.Spec.TTLSecondsAfterFinished)
	}
	pod, like := got.Spec.Template.Spec, statefulSet("").Spec.Template.Spec
	container := pod.Containers[0]
	for what, diff := range map[string]string{
		"image":        cmp.Diff("registry.example.com:5000/team/kubectl-jobset:v1.2.3", container.Image),
		"pull policy":  cmp.Diff(corev1.PullNever, container.ImagePullPolicy),
		"arguments":    cmp.Diff([]string{"migrate", "to-server", "--freeze-timeout=5m0s", "--remove-access"}, container.Args),
		"pull secrets": cmp.Diff(like.ImagePullSecrets, pod.ImagePullSecrets),
		"nodes":        cmp.Diff(like.NodeSelector, pod.NodeSelector),
		"tolerations":  cmp.Diff(like.Tolerations, pod.Tolerations),
		"account":      cmp.Diff("jobset-apiserver-migration", pod.ServiceAccountName),
		"labels":       cmp.Diff(map[string]string{"app.kubernetes.io/name": "jobset-apiserver-migration"}, got.Spec.Template.Labels),
		"security of the pod": cmp.Diff(&corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65532), RunAsGroup: ptr.To[int64](65532),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}, pod.SecurityContext),
		"security of the container": cmp.Diff(&corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}, container.SecurityContext),
		"permissions": cmp.Diff("account and binding", f.access()),
	} {
		if diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	account, err := f.kube.CoreV1().ServiceAccounts(systemNamespace).Get(t.Context(), jobName, metav1.GetOptions{})
	if err != nil || len(account.OwnerReferences) != 1 || account.OwnerReferences[0].Kind != "Job" {
		t.Errorf("the ServiceAccount must belong to the Job: %v, %v", account.OwnerReferences, err)
	}
}

// TestJobThatExists checks that a running Job is followed or refused, and that a finished one is replaced.
func TestJobThatExists(t *testing.T) {
	foreign := job("old", "")
	foreign.Annotations = nil
	for name, tc := range map[string]struct {
		job              *batchv1.Job
		wantOut, wantErr string
		replaced         bool
	}{
		"it runs": {job: job("old", ToServer), wantOut: "Job jobset-system/jobset-apiserver-migration runs already, with the flags that it was created with\n"},
		"it runs the other direction": {job: job("old", ToCRD), wantErr: "--in-cluster: Job jobset-system/jobset-apiserver-migration, which runs migrate to-crd, has not ended: " +
			"run kubectl jobset migrate to-crd --in-cluster to follow it; or, to undo what it has done, run kubectl -n jobset-system delete job jobset-apiserver-migration, and this command again"},
		"it is another one": {job: foreign, wantErr: "--in-cluster: Job jobset-system/jobset-apiserver-migration has no annotation migration.jobset-apiserver.io/direction, " +
			"so this command has not created it: delete or rename it"},
		"it has ended": {job: job("old", ToCRD, condition(batchv1.JobComplete, "", "")), replaced: true, wantOut: "Replacing Job jobset-system/jobset-apiserver-migration, which has ended\n" +
			"Created Job jobset-system/jobset-apiserver-migration with image kubectl-jobset:v1\n"},
		"it has failed": {job: job("old", ToServer, condition(batchv1.JobFailed, "", "")), replaced: true, wantOut: "Replacing Job jobset-system/jobset-apiserver-migration, which has ended\n" +
			"Created Job jobset-system/jobset-apiserver-migration with image kubectl-jobset:v1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.add(tc.job, statefulSet("jobset-apiserver:v1"))
			got, err := f.remote().start(t.Context())
			expectError(t, err, tc.wantErr)
			if err == nil && (got.UID != "old") != tc.replaced {
				t.Errorf("the Job has UID %q", got.UID)
			}
			if diff := cmp.Diff(tc.wantOut, f.out.String()); diff != "" {
				t.Errorf("printed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPluginImage(t *testing.T) {
	const advice = ": name the image of kubectl-jobset of the same version with --image"
	for image, want := range map[string][2]string{
		"jobset-apiserver":                          {"kubectl-jobset", ""},
		"jobset-apiserver:v1":                       {"kubectl-jobset:v1", ""},
		"localhost:5000/jobset-apiserver":           {"localhost:5000/kubectl-jobset", ""},
		"ghcr.io/jobset-apiserver/jobset-apiserver": {"ghcr.io/jobset-apiserver/kubectl-jobset", ""},
		"r/jobset-apiserver:v1@sha256:00":           {"", "--image: the image of StatefulSet jobset-system/jobset-apiserver, r/jobset-apiserver:v1@sha256:00, has a digest, which is not that of kubectl-jobset" + advice},
		"r/our-jobsets:v1": {"", "--image: the image of StatefulSet jobset-system/jobset-apiserver, r/our-jobsets:v1, is not called jobset-apiserver, " +
			"so the name of that of kubectl-jobset is not known" + advice},
		"": {"", "--image: StatefulSet jobset-system/jobset-apiserver has no container apiserver, whose image says where that of kubectl-jobset is" + advice},
	} {
		f := newFixture(t)
		f.add(statefulSet(image))
		found, err := findServer(t.Context(), f.kube)
		if err != nil {
			t.Fatal(err)
		}
		got, err := found.pluginImage()
		expectError(t, err, want[1])
		if got != want[0] {
			t.Errorf("%s: got %s, want %s", image, got, want[0])
		}
	}
}

// TestNoServer checks that an image must be named without a server, and may be.
func TestNoServer(t *testing.T) {
	f := newFixture(t)
	r := f.remote()
	_, err := r.start(t.Context())
	expectError(t, err, "--image: namespace jobset-system has no Deployment or StatefulSet with the label app.kubernetes.io/name=jobset-apiserver, "+
		"whose image says where that of kubectl-jobset is: install jobset-apiserver, or name the image of kubectl-jobset of the same version with --image")
	if f.access() != "" {
		t.Errorf("%s must not have been created", f.access())
	}
	r.image = "mine:v1"
	if job, err := r.start(t.Context()); err != nil || job.Spec.Template.Spec.Containers[0].Image != "mine:v1" {
		t.Errorf("Job %v, error %v", job, err)
	}
}

// TestNotAllowed checks that nothing is left if the user may not create everything.
func TestNotAllowed(t *testing.T) {
	const advice = "; the Job may do everything, so only those who may do everything can create it: ask an administrator of the cluster, or leave out --in-cluster"
	for resource, want := range map[string]string{
		"serviceaccounts":     `--in-cluster: creating ServiceAccount jobset-system/jobset-apiserver-migration: serviceaccounts "jobset-apiserver-migration" is forbidden: no` + advice,
		"clusterrolebindings": `--in-cluster: creating ClusterRoleBinding jobset-apiserver-migration: clusterrolebindings.rbac.authorization.k8s.io "jobset-apiserver-migration" is forbidden: no` + advice,
		"jobs":                `--in-cluster: creating Job jobset-system/jobset-apiserver-migration: jobs.batch "jobset-apiserver-migration" is forbidden: no`,
	} {
		f := newFixture(t)
		f.add(statefulSet("jobset-apiserver:v1"))
		f.kube.PrependReactor("create", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), jobName, errors.New("no"))
		})
		_, err := f.remote().start(t.Context())
		expectError(t, err, want)
		if f.access() != "" {
			t.Errorf("%s: %s is left", resource, f.access())
		}
	}
}

// TestEndInJob checks when the command in the Job gives up its permissions, and whether another pod may go on.
func TestEndInJob(t *testing.T) {
	for name, tc := range map[string]struct {
		err        error
		want       string
		wantAccess string
		wantLimit  int32
	}{
		"success":           {nil, "", "account", 6},
		"it may go on":      {errors.New("no connection"), "no connection", "account and binding", 6},
		"it cannot succeed": {final(errors.New("not accepted")), "not accepted", "account", 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.add(job("1", ToServer))
			if _, err := giveAccess(t.Context(), f.kube); err != nil {
				t.Fatal(err)
			}
			expectError(t, endInJob(t.Context(), f.kube, tc.err), tc.want)
			got, err := f.kube.BatchV1().Jobs(systemNamespace).Get(t.Context(), jobName, metav1.GetOptions{})
			if err != nil || *got.Spec.BackoffLimit != tc.wantLimit || f.access() != tc.wantAccess {
				t.Errorf("limit %d, %s, error %v", *got.Spec.BackoffLimit, f.access(), err)
			}
		})
	}
}

func TestMoveFlags(t *testing.T) {
	for args, want := range map[string]string{
		"to-server --freeze-timeout=1s":    "--freeze-timeout: must be at least 1m0s, not 1s",
		"to-server --in-cluster --dry-run": "--in-cluster: a dry run runs here: leave out --in-cluster or --dry-run",
		"to-crd --image=x":                 "--image: has no effect without --in-cluster",
	} {
		cmd := NewCommand(cli.NewFactory(genericiooptions.NewTestIOStreamsDiscard()))
		cmd.SetArgs(strings.Fields(args))
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		expectError(t, cmd.ExecuteContext(context.Background()), want)
	}
}
