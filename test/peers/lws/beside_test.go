// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lws

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/probe"
)

var leaderWorkerSets = leaderworkersetv1.SchemeGroupVersion

// Accounts as they are in the audit log.
const (
	ourAccounts      = "system:serviceaccount:jobset-system:"
	upstreamsAccount = "system:serviceaccount:lws-system:lws-controller-manager"
)

// TestJobSetsBesideUpstreamsGroups serves JobSets in a cluster whose LeaderWorkerSets belong to upstream's controller.
func TestJobSetsBesideUpstreamsGroups(t *testing.T) {
	t.Run("group that is not routed to us", func(t *testing.T) {
		if err := cluster.AskAboutPods(t.Context()); err != nil {
			t.Fatal(err)
		}
		cluster.StartController(t)
		live(t)
	})
	t.Run("component without-leaderworkerset", func(t *testing.T) {
		roles := cluster.Kube.RbacV1()
		const role = "jobset-controller-manager:leaderworkersets"
		if err := errors.Join(
			roles.ClusterRoles().Delete(t.Context(), role, metav1.DeleteOptions{}),
			roles.ClusterRoleBindings().Delete(t.Context(), role, metav1.DeleteOptions{}),
			cluster.LeavePods(t.Context()),
			cluster.RestartServer(t.Context(), "--runtime-config="+leaderWorkerSets.String()+"=false"),
		); err != nil {
			t.Fatal(err)
		}
		cluster.StartController(t, "--controllers=*,-leaderworkerset")
		live(t)
	})
}

// live runs a set of each kind from its creation until its namespace is gone, while JobSets are asked for all the time.
func live(t *testing.T) {
	t.Helper()
	framework.Eventually(t, "JobSets are served", func(ctx context.Context) error {
		_, err := cluster.JobSets.JobsetV1alpha2().JobSets("").List(ctx, metav1.ListOptions{Limit: 1})
		return err
	})
	asking, err := probe.Start(t.Context(), cluster.REST, probe.Options{Period: 250 * time.Millisecond, AllWrites: true})
	if err != nil {
		t.Fatal(err)
	}
	groups, sets := namespace(t, "groups"), namespace(t, "sets")
	create(t, groups)
	complete(t, sets)
	scale(t, groups)
	checkWriters(t, groups)
	remove(t, groups, sets)

	report, err := asking.Stop(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("JobSets all the while:\n%s", report)
	if total := report.Total(); total.Failures > 0 || len(report.Lost) > 0 {
		t.Errorf("%d requests for JobSets failed; lost: %q", total.Failures, report.Lost)
	}
	writers(t, groups, sets)
	noPanic(t)
}

func namespace(t *testing.T, name string) string {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}}
	created, err := cluster.Kube.CoreV1().Namespaces().Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created.Name
}

// create creates a set of two groups with two pods each, and waits until upstream's controller runs it.
func create(t *testing.T, namespace string) {
	t.Helper()
	set := builders.LeaderWorkerSet("groups", 2, 2)
	set.ObjectMeta = metav1.ObjectMeta{Name: "groups"}
	set.Spec.LeaderWorkerTemplate.WorkerTemplate.Annotations = map[string]string{"jobset-apiserver.io/kwok-outcome": "running"}
	framework.Eventually(t, "the LeaderWorkerSet is created", func(ctx context.Context) error { // as soon as upstream's webhooks answer
		_, err := cluster.JobSets.LeaderworkersetV1().LeaderWorkerSets(namespace).Create(ctx, set.DeepCopy(), metav1.CreateOptions{})
		return err
	})
	ready(t, namespace, 2)
}

// scale adds a group.
func scale(t *testing.T, namespace string) {
	t.Helper()
	_, err := cluster.JobSets.LeaderworkersetV1().LeaderWorkerSets(namespace).
		Patch(t.Context(), "groups", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ready(t, namespace, 3)
}

// ready waits until so many groups of two pods are ready.
func ready(t *testing.T, namespace string, groups int) {
	t.Helper()
	framework.Eventually(t, fmt.Sprint(groups, " groups are ready"), func(ctx context.Context) error {
		set, err := cluster.JobSets.LeaderworkersetV1().LeaderWorkerSets(namespace).Get(ctx, "groups", metav1.GetOptions{})
		if err != nil {
			return err
		}
		pods, err := cluster.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err == nil && (int(set.Status.ReadyReplicas) != groups || len(pods.Items) != 2*groups) {
			err = fmt.Errorf("%d pods, status %+v", len(pods.Items), set.Status)
		}
		return err
	})
}

// complete runs a JobSet to its end.
func complete(t *testing.T, namespace string) {
	t.Helper()
	sets := cluster.JobSets.JobsetV1alpha2().JobSets(namespace)
	set := builders.JobSet("set", builders.WithJobs("workers", 2, 1))
	set.Namespace = namespace
	if _, err := sets.Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the JobSet completes", func(ctx context.Context) error {
		set, err := sets.Get(ctx, "set", metav1.GetOptions{})
		if err == nil && set.Status.TerminalState != jobsetv1alpha2.TerminalStateCompleted {
			err = fmt.Errorf("its status is %+v", set.Status)
		}
		return err
	})
}

// checkWriters looks at who has written the fields of upstream's set and of its children.
func checkWriters(t *testing.T, namespace string) {
	t.Helper()
	for _, resource := range []schema.GroupVersionResource{
		leaderWorkerSets.WithResource("leaderworkersets"), {Version: "v1", Resource: "pods"}, {Version: "v1", Resource: "services"},
		{Group: "apps", Version: "v1", Resource: "statefulsets"}, {Group: "apps", Version: "v1", Resource: "controllerrevisions"},
	} {
		list, err := cluster.Dynamic.Resource(resource).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) == 0 {
			t.Errorf("there are no %s", resource.Resource)
		}
		for i := range list.Items {
			for _, entry := range list.Items[i].GetManagedFields() {
				if strings.HasPrefix(entry.Manager, "jobset") {
					t.Errorf("%s %s was written by %s", resource.Resource, list.Items[i].GetName(), entry.Manager)
				}
			}
		}
	}
}

// remove deletes namespaces, which must end.
func remove(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := cluster.Kube.CoreV1().Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		framework.Eventually(t, "namespace "+name+" is gone", func(ctx context.Context) error {
			found, err := cluster.Kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.Join(err, fmt.Errorf("it exists: %+v", found.Status.Conditions))
		})
	}
}

// writers reads in the audit log of kube-apiserver who has written to both namespaces. Our programs have written nothing, not even an event,
// to the namespace of upstream's set.
func writers(t *testing.T, groups, sets string) {
	t.Helper()
	file, err := os.Open(filepath.Join(cluster.Dir, "logs", "kube-apiserver-audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	own, upstreams := 0, 0
	lines := bufio.NewScanner(file)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var event auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil || event.ObjectRef == nil {
			continue // the last line may be half written
		}
		switch user := event.User.Username; {
		case event.ObjectRef.Namespace == groups && strings.HasPrefix(user, ourAccounts):
			t.Errorf("%s: %s %s", user, event.Verb, event.RequestURI)
		case event.ObjectRef.Namespace == groups && user == upstreamsAccount:
			upstreams++
		case event.ObjectRef.Namespace == sets && strings.HasPrefix(user, ourAccounts):
			own++
		}
	}
	if lines.Err() != nil || own == 0 || upstreams == 0 {
		t.Errorf("the audit log has %d writes of our controller and %d of upstream's (%v)", own, upstreams, lines.Err())
	}
}

// noPanic wants kube-apiserver not to have panicked about a request, other than to abort one.
func noPanic(t *testing.T) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(cluster.Dir, "logs", "kube-apiserver.log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if (strings.Contains(line, "Observed a panic") || strings.Contains(line, "panic'd")) && !strings.Contains(line, "abort Handler") {
			t.Errorf("kube-apiserver: %.1000s", line)
		}
	}
}
