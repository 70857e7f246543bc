// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	batchclient "k8s.io/client-go/kubernetes/typed/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

const (
	// jobName is the name of the Job of --in-cluster, of its ServiceAccount, and of the ClusterRoleBinding of that. There is one Job at
	// a time, so that a second command finds and follows it.
	jobName = "jobset-apiserver-migration"
	jobText = "Job " + systemNamespace + "/" + jobName
	// inJobFlag is set for the command that runs in the Job.
	inJobFlag = "remove-access"
	// directionKey is the annotation of the Job that says what it runs.
	directionKey = parameterPrefix + "direction"
	// goneTimeout is how long a Job that has ended may take until it is deleted.
	goneTimeout = time.Minute
	// createTimeout is how long it may take to create the Job and what it needs.
	createTimeout = 30 * time.Second
)

// remote runs a migration in a Job, and follows it.
type remote struct {
	kube      kubernetes.Interface
	logs      logOpener
	out       io.Writer
	direction Direction
	freezeFor time.Duration
	// image is the image of the plugin. If it is empty, it is derived from the image of the server.
	image string
	// every is how often the Job and its pods are read.
	every time.Duration
}

// runInCluster is --in-cluster.
func runInCluster(ctx context.Context, f *cli.Factory, direction Direction, o *moveOptions) error {
	clients, err := f.Clients()
	if err != nil {
		return err
	}
	r := &remote{
		kube: clients.Kube, logs: logsOf(clients.Kube), out: f.Out,
		direction: direction, freezeFor: o.freezeFor, image: o.image, every: time.Second,
	}
	return r.run(ctx)
}

func (r *remote) run(ctx context.Context) error {
	job, err := r.start(ctx)
	if err != nil {
		return err
	}
	ended, err := r.follow(ctx, job)
	if ctx.Err() != nil && !ended {
		fmt.Fprintf(r.out, "Interrupted. %s goes on: run kubectl jobset migrate %s --in-cluster again to follow it, "+
			"or kubectl jobset migrate status\n", jobText, r.direction)
		return cli.ErrSilent
	}
	if !ended {
		return fmt.Errorf("following %s, which goes on: %w", jobText, err)
	}
	return errors.Join(err, r.clean(context.WithoutCancel(ctx), job))
}

// clean removes the permissions of a Job that has ended.
func (r *remote) clean(ctx context.Context, job *batchv1.Job) error {
	current, err := r.jobs().Get(ctx, jobName, metav1.GetOptions{})
	if err == nil && current.UID != job.UID {
		return nil // another user has replaced the Job, and the new one needs the permissions
	}
	return removeAccess(ctx, r.kube)
}

func (r *remote) jobs() batchclient.JobInterface { return r.kube.BatchV1().Jobs(systemNamespace) }

// start returns the Job that runs, or creates one.
func (r *remote) start(ctx context.Context) (*batchv1.Job, error) {
	job, err := r.jobs().Get(ctx, jobName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return r.create(ctx)
	case err != nil:
		return nil, fmt.Errorf("--in-cluster: reading %s: %w", jobText, err)
	case outcome(job) == nil && job.DeletionTimestamp == nil:
		return job, r.continues(job)
	}
	fmt.Fprintf(r.out, "Replacing %s, which has ended\n", jobText)
	if err := r.delete(ctx, job); err != nil {
		return nil, fmt.Errorf("--in-cluster: deleting %s, which has ended: %w", jobText, err)
	}
	return r.create(ctx)
}

// continues returns an error if a Job that has not ended does something else.
func (r *remote) continues(job *batchv1.Job) error {
	switch runs := Direction(job.Annotations[directionKey]); runs {
	case r.direction:
		fmt.Fprintf(r.out, "%s runs already, with the flags that it was created with\n", jobText)
		return nil
	case ToServer, ToCRD:
		return fmt.Errorf("--in-cluster: %s, which runs migrate %s, has not ended: run kubectl jobset migrate %[2]s --in-cluster to follow it; "+
			"or, to undo what it has done, run kubectl -n %s delete job %s, and this command again", jobText, runs, systemNamespace, jobName)
	}
	return fmt.Errorf("--in-cluster: %s has no annotation %s, so this command has not created it: delete or rename it", jobText, directionKey)
}

// delete deletes a Job, and waits until its name is free.
func (r *remote) delete(ctx context.Context, job *batchv1.Job) error {
	err := r.jobs().Delete(ctx, jobName, metav1.DeleteOptions{
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground), Preconditions: metav1.NewUIDPreconditions(string(job.UID)),
	})
	if err != nil {
		return utilerrors.FilterOut(err, apierrors.IsNotFound)
	}
	err = wait.PollUntilContextTimeout(ctx, r.every, goneTimeout, true, func(ctx context.Context) (bool, error) {
		current, err := r.jobs().Get(ctx, jobName, metav1.GetOptions{})
		return apierrors.IsNotFound(err) || err == nil && current.UID != job.UID, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("it still exists after %s: a finalizer may keep it, see kubectl -n %s get job %s -o yaml",
			goneTimeout, systemNamespace, jobName)
	}
	return err
}

// create creates a Job with the permissions that it needs.
func (r *remote) create(ctx context.Context) (*batchv1.Job, error) {
	server, err := findServer(ctx, r.kube)
	if err != nil {
		return nil, err
	}
	image := r.image
	if image == "" {
		if image, err = server.pluginImage(); err != nil {
			return nil, err
		}
	}
	// An interruption from here on would leave a Job without permissions, or permissions without a Job.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer stop()
	account, err := giveAccess(ctx, r.kube)
	if err != nil {
		return nil, err
	}
	job, err := r.jobs().Create(ctx, r.job(image, server), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("--in-cluster: another user has created %s at this moment: run the command again to follow it", jobText)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--in-cluster: creating %s: %w", jobText, err), removeAccess(context.WithoutCancel(ctx), r.kube))
	}
	fmt.Fprintf(r.out, "Created %s with image %s\n", jobText, image)
	// The ServiceAccount goes with the Job even if no command follows it until its end.
	account.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID}}
	if _, err := r.kube.CoreV1().ServiceAccounts(systemNamespace).Update(ctx, account, metav1.UpdateOptions{}); err != nil {
		fmt.Fprintf(r.out, "ServiceAccount %s/%s is not deleted with the Job, but when this command ends: %v\n", systemNamespace, jobName, err)
	}
	return job, nil
}

// accessMeta is the metadata of everything that --in-cluster creates. The label is not that of the server, whose Service and
// PodDisruptionBudget select its pods.
func accessMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: jobName, Labels: map[string]string{"app.kubernetes.io/name": jobName}}
}

// giveAccess creates the ServiceAccount of the Job, which may do everything: the way back takes owner references away from children
// of any kind, and gives them back. The binding lives only as long as the Job.
func giveAccess(ctx context.Context, client kubernetes.Interface) (*corev1.ServiceAccount, error) {
	// What an earlier Job has left is deleted first, because the garbage collector deletes a ServiceAccount with its Job.
	err := removeAccess(ctx, client)
	var account *corev1.ServiceAccount
	if err == nil {
		account, err = createAccess(ctx, client)
	}
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w; the Job may do everything, so only those who may do everything can create it: "+
			"ask an administrator of the cluster, or leave out --in-cluster", err)
	}
	return account, err
}

func createAccess(ctx context.Context, client kubernetes.Interface) (*corev1.ServiceAccount, error) {
	account, err := client.CoreV1().ServiceAccounts(systemNamespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: accessMeta()},
		metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("--in-cluster: creating ServiceAccount %s/%s: %w", systemNamespace, jobName, err)
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: accessMeta(),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: systemNamespace, Name: jobName}},
	}, metav1.CreateOptions{})
	if err != nil {
		err = fmt.Errorf("--in-cluster: creating ClusterRoleBinding %s: %w", jobName, err)
		return nil, errors.Join(err, removeAccess(context.WithoutCancel(ctx), client))
	}
	return account, nil
}

// removeAccess deletes the permissions of the Job and its ServiceAccount. It may be repeated.
func removeAccess(ctx context.Context, client kubernetes.Interface) error {
	err := client.CoreV1().ServiceAccounts(systemNamespace).Delete(ctx, jobName, metav1.DeleteOptions{})
	if err = utilerrors.FilterOut(err, apierrors.IsNotFound); err != nil {
		err = fmt.Errorf("--in-cluster: deleting ServiceAccount %s/%s: %w", systemNamespace, jobName, err)
	}
	return errors.Join(removeBinding(ctx, client), err)
}

func removeBinding(ctx context.Context, client kubernetes.Interface) error {
	err := client.RbacV1().ClusterRoleBindings().Delete(ctx, jobName, metav1.DeleteOptions{})
	if err = utilerrors.FilterOut(err, apierrors.IsNotFound); err != nil {
		return fmt.Errorf("--in-cluster: deleting ClusterRoleBinding %s, which must not remain: %w", jobName, err)
	}
	return nil
}

// finalError is one that does not go away when the migration goes on.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

func final(err error) error { return finalError{err} }

// endInJob is the last act of the command in the Job: it removes its own permissions, unless another pod needs them to go on. The
// ServiceAccount, which may do nothing then, is deleted with the Job.
func endInJob(ctx context.Context, client kubernetes.Interface, err error) error {
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		if !errors.As(err, &finalError{}) {
			return err
		}
		// Another pod would come to the same end.
		_, failed := client.BatchV1().Jobs(systemNamespace).Patch(ctx, jobName, types.MergePatchType,
			[]byte(`{"spec":{"backoffLimit":0}}`), metav1.PatchOptions{})
		if failed != nil {
			return errors.Join(err, fmt.Errorf("--in-cluster: setting spec.backoffLimit of %s to 0: %w", jobText, failed))
		}
	}
	return errors.Join(err, removeBinding(ctx, client))
}
