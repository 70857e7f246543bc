// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/handover"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

const (
	// upstreamPrefix is the beginning of the names under which the processes of upstream's controllers are measured.
	upstreamPrefix = "upstream-"
	// upstreamJobSets is the name of upstream's controller of JobSets.
	upstreamJobSets = upstreamPrefix + "jobset"
	// upstreamTimeout bounds the wait for the first set that the webhooks of upstream let through, and upstreamPoll is how often it is tried.
	upstreamTimeout, upstreamPoll = 2 * time.Minute, 500 * time.Millisecond
)

// StoreOfSets is the server that stores JobSets.
func (c *Cluster) StoreOfSets() string {
	servers := c.servers()
	return servers[len(servers)-1]
}

// OpenUpstream installs the controllers of upstream, with their definitions and webhooks, in a cluster of hack/cluster.sh that has none of
// our programs (CLUSTER_COMPONENTS=none), starts them, and connects to the cluster. They run until stop is called.
func OpenUpstream(ctx context.Context, dir string) (c *Cluster, stop func() error, err error) {
	root, err := localcluster.Root()
	if err != nil {
		return nil, nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, nil, err
	}
	controllers := handover.Released()
	ports, err := localcluster.FreePorts(len(controllers))
	if err != nil {
		return nil, nil, err
	}
	for i, port := range ports {
		controllers[i].MetricsPort = port
	}
	if err := controllers.Install(ctx, &localcluster.Cluster{Root: root, Dir: dir}); err != nil {
		return nil, nil, fmt.Errorf("installing upstream's controllers: %w", err)
	}
	defer func() {
		if err != nil {
			controllers.Kill()
		}
	}()
	if err := controllers.Start(ctx); err != nil {
		return nil, nil, fmt.Errorf("starting upstream's controllers: %w", err)
	}
	c = &Cluster{Dir: dir, Upstream: true, upstream: controllers}
	stop = controllers.Stop
	for _, each := range controllers {
		if err := c.notePID(each); err != nil {
			return nil, nil, err
		}
		next := stop
		stop = func() error { return errors.Join(os.Remove(c.pidFile(each)), next()) }
	}
	if c, err = c.open(ctx, ""); err != nil {
		return nil, nil, err
	}
	return c, stop, c.untilAdmitted(ctx)
}

// upstreamPrograms are the names of the processes of upstream.
func (c *Cluster) upstreamPrograms() (names []string) {
	for _, each := range c.upstream {
		names = append(names, upstreamPrefix+each.Name)
	}
	return names
}

func (c *Cluster) pidFile(each *handover.Controller) string {
	return filepath.Join(c.Dir, "pids", upstreamPrefix+each.Name+".pid")
}

// notePID makes a process of upstream one of those that are measured.
func (c *Cluster) notePID(each *handover.Controller) error {
	return os.WriteFile(c.pidFile(each), []byte(strconv.Itoa(each.PID())), 0o644)
}

// doUpstream stops or starts upstream's controller of JobSets.
func (c *Cluster) doUpstream(ctx context.Context, action, component string) error {
	if component != "controller" || len(c.upstream) == 0 {
		return fmt.Errorf("%s of %s: upstream has no such program", action, component)
	}
	manager := c.upstream[0]
	if action == "stop" {
		return manager.Stop()
	}
	if err := manager.Run(ctx); err != nil {
		return err
	}
	return c.notePID(manager)
}

// untilAdmitted waits until a set of each kind passes the webhooks.
func (c *Cluster) untilAdmitted(ctx context.Context) error {
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox"}}}}
	set := &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Name: "admitted"}, Spec: jobsetv1alpha2.JobSetSpec{
		ReplicatedJobs: []jobsetv1alpha2.ReplicatedJob{{Name: "workers", Replicas: ptr.To[int32](1)}},
	}}
	set.Spec.ReplicatedJobs[0].Template.Spec.Template = template
	set.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	groups := &leaderworkersetv1.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Name: "admitted"}}
	groups.Spec.LeaderWorkerTemplate.WorkerTemplate, groups.Spec.StartupPolicy = template, leaderworkersetv1.StartupPolicyLeaderCreated
	var last error
	err := wait.PollUntilContextTimeout(ctx, upstreamPoll, upstreamTimeout, true, func(ctx context.Context) (bool, error) {
		_, ofJobs := c.JobSets.JobsetV1alpha2().JobSets(metav1.NamespaceDefault).Create(ctx, set, dry)
		_, ofGroups := c.JobSets.LeaderworkersetV1().LeaderWorkerSets(metav1.NamespaceDefault).Create(ctx, groups, dry)
		last = errors.Join(ofJobs, ofGroups)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until upstream's webhooks answer: %w", errors.Join(err, last))
	}
	return nil
}
