// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

const (
	// hostile and plain are the namespaces of the attacker and of the user beside him.
	hostile = "hostile"
	plain   = "plain"
	// victim is a set of the attacker that is there before each attack.
	victim = "victim"
)

// env is a local cluster with an attacker and a user, who may do everything in a namespace of their own and nothing else.
type env struct {
	dir, script string
	limit       uint64
	bound       time.Duration
	processes   []process

	// url and client belong to the attacker: url leads to JobSets, and urls to other objects, by the name of the resource.
	url    string
	urls   map[string]string
	client *http.Client
	// hostile removes what the attacker left; plain are the user's JobSets.
	hostile, plain versioned.Interface
	count          int
	// newToken makes a token of the user that no program has seen yet.
	newToken func(ctx context.Context) (string, error)
	// direct reaches the server without kube-apiserver.
	direct direct
	// underWay takes a value when a held attack that tells it is under way.
	underWay chan struct{}
}

func open(ctx context.Context, dir, script string, limit uint64, bound time.Duration) (*env, error) {
	e := &env{dir: dir, script: script, limit: limit, bound: bound, underWay: make(chan struct{}, 1)}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	admin, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if e.hostile, err = versioned.NewForConfig(config); err != nil {
		return nil, err
	}
	attacker, err := user(ctx, admin, config, hostile, "user")
	if err != nil {
		return nil, err
	}
	attacker.Timeout = 2 * time.Minute
	if e.client, err = rest.HTTPClientFor(attacker); err != nil {
		return nil, err
	}
	e.url = config.Host + "/apis/" + apiVersion + "/namespaces/" + hostile + "/jobsets"
	e.urls = map[string]string{pods: config.Host + "/api/v1/namespaces/" + hostile + "/pods"}
	for resource, version := range map[string]string{sequentialJobs: sequenceVersion, leaderWorkerSets: groupVersion, disaggregatedSets: roleVersion} {
		e.urls[resource] = config.Host + "/apis/" + version + "/namespaces/" + hostile + "/" + resource
	}
	bystander, err := user(ctx, admin, config, plain, "user")
	if err != nil {
		return nil, err
	}
	second, err := user(ctx, admin, config, hostile, "second")
	if err != nil {
		return nil, err
	}
	if e.direct, err = openDirect(ctx, admin, []*rest.Config{attacker, second}, bystander); err != nil {
		return nil, err
	}
	e.newToken = func(ctx context.Context) (string, error) { return tokenOf(ctx, admin, plain, "user") }
	bystander.Timeout = 20 * time.Second
	if e.plain, err = versioned.NewForConfig(bystander); err != nil {
		return nil, err
	}
	return e, e.adopt()
}

// user makes an account in a namespace that may do everything in it. It is no administrator, whose requests are exempt
// from limits.
func user(ctx context.Context, admin kubernetes.Interface, config *rest.Config, namespace, name string) (*rest.Config, error) {
	_, err := admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	_, err = admin.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	_, err = admin.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: namespace}},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	token, err := tokenOf(ctx, admin, namespace, name)
	if err != nil {
		return nil, err
	}
	own := rest.AnonymousClientConfig(config)
	own.BearerToken, own.QPS = token, -1
	return own, nil
}

func tokenOf(ctx context.Context, admin kubernetes.Interface, namespace, name string) (string, error) {
	token, err := admin.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(6 * 3600))},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return token.Status.Token, nil
}

// adopt limits both programs.
func (e *env) adopt() error {
	e.processes = nil
	for _, name := range programs {
		p, err := adopt(e.dir, name, e.limit)
		if err != nil {
			return err
		}
		e.processes = append(e.processes, p)
	}
	return nil
}

// endLimits ends the limits of both programs.
func (e *env) endLimits() {
	for _, p := range e.processes {
		if err := p.endLimit(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", p.name, err)
		}
	}
}

// ended names the programs that do not run.
func (e *env) ended() (names []string) {
	for _, p := range e.processes {
		if !p.alive() {
			names = append(names, p.name)
		}
	}
	return names
}

// restart starts what has ended.
func (e *env) restart(ctx context.Context) error {
	for _, name := range e.ended() {
		if err := e.clusterScript(ctx, "start", name); err != nil {
			return err
		}
	}
	return e.adopt()
}

// clusterScript starts or stops a program of the cluster.
func (e *env) clusterScript(ctx context.Context, action, name string) error {
	cmd := exec.CommandContext(ctx, e.script, action, name) //nolint:gosec // a script of this repository
	cmd.Env = append(os.Environ(), "CLUSTER_DIR="+e.dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", action, name, err, out)
	}
	return nil
}

// poll repeats the check until it is done, the time is over, or a program has ended, without which it will not be done.
func (e *env) poll(ctx context.Context, timeout time.Duration, check wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		if names := e.ended(); len(names) > 0 {
			return false, fmt.Errorf("%v ended", names)
		}
		return check(ctx)
	})
}

// prepare makes the victims, and clean removes what the attacker stored.
func (e *env) prepare(ctx context.Context) error {
	js := builders.JobSet(victim, builders.WithJobs("j0", 1, 1))
	js.Namespace, js.Spec.Suspend = "", new(true)
	return e.poll(ctx, e.bound, func(ctx context.Context) (bool, error) {
		_, err := e.hostile.JobsetV1alpha2().JobSets(hostile).Create(ctx, js, metav1.CreateOptions{})
		_, groupErr := e.hostile.LeaderworkersetV1().LeaderWorkerSets(hostile).Create(ctx, stoppedGroups(), metav1.CreateOptions{})
		return (err == nil || apierrors.IsAlreadyExists(err)) && (groupErr == nil || apierrors.IsAlreadyExists(groupErr)), nil
	})
}

// stoppedGroups is a victim without groups.
func stoppedGroups() *leaderworkersetv1.LeaderWorkerSet {
	lws := &leaderworkersetv1.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Name: victim}}
	lws.Spec.Replicas = new(int32(0))
	lws.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	return lws
}

func (e *env) clean(ctx context.Context) error {
	var last error
	err := e.poll(ctx, 2*e.bound, func(ctx context.Context) (bool, error) {
		sets := e.hostile.JobsetV1alpha2().JobSets(hostile)
		last = sets.DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}, metav1.ListOptions{})
		left, err := sets.List(ctx, metav1.ListOptions{Limit: 1})
		last = errors.Join(last, err)
		sequences := e.hostile.BatchV1alpha1().SequentialJobs(hostile)
		last = errors.Join(last, sequences.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
		remaining, err := sequences.List(ctx, metav1.ListOptions{Limit: 1})
		last = errors.Join(last, err)
		groups, err := e.cleanGroups(ctx)
		last = errors.Join(last, err)
		return last == nil && len(left.Items) == 0 && len(remaining.Items) == 0 && groups == 0, nil
	})
	if err != nil {
		return fmt.Errorf("removing what the attacker stored: %w", errors.Join(err, last))
	}
	return nil
}

// cleanGroups removes LeaderWorkerSets and DisaggregatedSets, and returns whether some are left.
func (e *env) cleanGroups(ctx context.Context) (left int, err error) {
	roles, groups := e.hostile.DisaggregatedsetV1().DisaggregatedSets(hostile), e.hostile.LeaderworkersetV1().LeaderWorkerSets(hostile)
	err = errors.Join(roles.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}), groups.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	if err != nil {
		return 0, err
	}
	remaining, err := roles.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0, err
	}
	sets, err := groups.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0, err
	}
	return len(remaining.Items) + len(sets.Items), nil
}

// observed waits until the controller has written the status of what the attacker stored, or 15 seconds: it works on a set
// after the server has answered.
func (e *env) observed(ctx context.Context) {
	_ = e.poll(ctx, 15*time.Second, func(ctx context.Context) (bool, error) { // the peaks say what it cost, however far it came
		sequences, err := e.hostile.BatchV1alpha1().SequentialJobs(hostile).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, nil
		}
		for _, sj := range sequences.Items {
			if sj.Status.ObservedGeneration == 0 {
				return false, nil
			}
		}
		roles, err := e.hostile.DisaggregatedsetV1().DisaggregatedSets(hostile).List(ctx, metav1.ListOptions{})
		if err != nil || slices.ContainsFunc(roles.Items, func(ds disaggregatedsetv1.DisaggregatedSet) bool { return ds.Status.ObservedGeneration == 0 }) {
			return false, nil
		}
		sets, err := e.hostile.JobsetV1alpha2().JobSets(hostile).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, nil
		}
		for _, js := range sets.Items {
			if len(js.Status.ReplicatedJobsStatus) == 0 {
				return false, nil
			}
		}
		return true, nil
	})
}
