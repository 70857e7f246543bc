// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/dynamic"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/etcdcluster"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/replicas"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// size is the number of servers, and of members of their etcd.
const size = 3

// replicated is a control plane with three of our API servers on three members of etcd.
type replicated struct {
	*cluster
	etcd    *etcdcluster.Cluster
	servers *replicas.Set
}

// several is the one of this package, once a test has asked for it.
var several *replicated

// useReplicated makes the replicated control plane the shared one until the test ends. The first test starts it.
func useReplicated(t *testing.T) *replicated {
	t.Helper()
	if several == nil {
		r := &replicated{}
		several = r
		if err := r.start(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if several.servers == nil {
		t.Fatal("the replicated control plane did not start")
	}
	single := shared
	shared = several.cluster
	t.Cleanup(func() { shared = single })
	return several
}

func (r *replicated) start(ctx context.Context) error {
	local, err := localcluster.New(".cluster-faults-replicated", "", "CLUSTER_COMPONENTS=none")
	if err != nil {
		return err
	}
	r.cluster = &cluster{Cluster: local}
	if err := errors.Join(local.Stop(false), local.Script("up"), r.connect()); err != nil {
		return err
	}
	if err := local.Script("kubectl", "apply", "--server-side", "-k", filepath.Join(local.Root, "artifacts", "base", "rbac")); err != nil {
		return err
	}
	for account, name := range map[string]string{"jobset-apiserver": "apiserver", "jobset-controller-manager": "controller"} {
		if err := r.WriteKubeconfig(ctx, account, r.file(name+".kubeconfig")); err != nil {
			return fmt.Errorf("credentials of %s: %w", account, err)
		}
	}
	binaries, err := localcluster.TestBinaries(local.Root)
	if err != nil {
		return err
	}
	if r.etcd, err = etcdcluster.Start(ctx, filepath.Join(binaries, "etcd"), r.file("members"), size); err != nil {
		return err
	}
	if r.servers, err = replicas.Start(ctx, r.settings(), size); err != nil {
		return err
	}
	all, err := dynamic.NewForConfig(r.REST)
	if err != nil {
		return err
	}
	return framework.Register(ctx, r.Kube, all, r.servers.Port, r.servers.CA)
}

// settings are the settings of the overlay external-etcd, unless a short run has to do.
func (r *replicated) settings() replicas.Settings {
	s := replicas.Settings{
		Binary: r.Program("jobset-apiserver"), Kubeconfig: r.file("apiserver.kubeconfig"), Dir: r.file("servers"),
		Flags:     append(r.etcd.Flags(), fmt.Sprint("--shutdown-delay-duration=", shutdownDelay())),
		Readiness: replicas.Stock,
	}
	if rounds() == 0 {
		s.Readiness = replicas.Quick
	}
	return s
}

func (r *replicated) file(name string) string { return filepath.Join(r.Dir, name) }

// stop ends everything. Unless all went well, the logs are kept with those of the control plane.
func (r *replicated) stop(good bool) error {
	if r.servers != nil {
		r.servers.Close()
	}
	if r.etcd != nil {
		r.etcd.Close()
	}
	if r.cluster == nil {
		return nil
	}
	var errs []error
	for _, pattern := range []string{"members/*.log", "servers/*.log"} {
		logs, err := filepath.Glob(r.file(pattern))
		errs = append(errs, err)
		for _, log := range logs {
			errs = append(errs, os.Rename(log, r.file(filepath.Join("logs", filepath.Base(log)))))
		}
	}
	return errors.Join(append(errs, r.Stop(good))...)
}
