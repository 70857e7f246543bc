// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// Usage explains the command line of hack/cluster.sh.
const Usage = `Usage: hack/cluster.sh up | down [--keep-logs] | status
       hack/cluster.sh stop|start apiserver|controller|etcd
       hack/cluster.sh kubectl ARGUMENTS...

  up      start what does not run; may be called again at any time
  down    stop everything and remove the data; logs are kept in _output/failed/ after a start that failed, or if told so
  status  list the processes; fails when one of them does not run
  stop    stop one of our components and keep its data; start brings it back

Environment (values for the Kubernetes control plane are read when it is created):
  CLUSTER_DIR                  directory of the cluster                      (.cluster in the checkout)
  CLUSTER_NAME                 name in kubeconfig; kept for life             (made from the directory)
  CLUSTER_NODES                number of simulated nodes                     (20)
  CLUSTER_REAL_NODES           number of nodes with real containers, as root; kept for life  (0)
  CLUSTER_STORAGE              embedded, or etcd for one in its own process; kept for life  (embedded)
  CLUSTER_FEATURE_GATES        feature gates of both of our programs, with what they need of the cluster; kept for life  (none)
  CLUSTER_APISERVER_ARGS       further flags of jobset-apiserver
  CLUSTER_CONTROLLER_ARGS      further flags of jobset-controller
  CLUSTER_AUDIT_POLICY         audit policy file of jobset-apiserver, log in logs/apiserver-audit.log
  CLUSTER_KUBE_APISERVER_ARGS  further --flag=value words for kube-apiserver
  CLUSTER_KUBE_CONTROLLER_MANAGER_ARGS  the same for kube-controller-manager
  CLUSTER_KUBE_SCHEDULER_ARGS  further --flag=value words for kube-scheduler
  CLUSTER_KUBE_GOGC            GOGC of the programs of Kubernetes, etcd and KWOK, which then also free memory lazily
  CLUSTER_KUBE_AUDIT_POLICY    audit policy file of kube-apiserver, log in logs/kube-apiserver-audit.log
  CLUSTER_BIN                  directory with our two programs; without it they are built into bin/
  CLUSTER_COMPONENTS           all; none for Kubernetes alone; or images, with which real nodes have our images and a volume, and nothing is installed  (all)
`

// ErrUsage says that the command line is not one of Usage.
var ErrUsage = errors.New("unknown command")

// supervisor works on one cluster.
type supervisor struct {
	settings
	processes
	// binaries is the directory with the programs of the control plane.
	binaries string
	// nodeBinaries is the directory with the programs of real nodes; empty without real nodes.
	nodeBinaries string
	network      *network
	// apiPort is the port of kube-apiserver.
	apiPort string
	admin   *admin
	locked  *os.File
}

func (c *supervisor) kubeconfig() string { return c.path("kubeconfig") }

func say(text string) { fmt.Fprintln(os.Stderr, text) }

// Command runs hack/cluster.sh of a checkout.
func Command(ctx context.Context, root string, args []string) error {
	if len(args) == 0 {
		return ErrUsage
	}
	s, err := readSettings(root, os.Getenv)
	if err != nil {
		return err
	}
	c := &supervisor{settings: s, processes: processes{base: s.dir, started: map[string]*child{}}, network: &network{file: s.path("network")}}
	switch args[0] {
	case "up":
		return c.up(ctx)
	case "down":
		return c.down(args[1:])
	case "status":
		return c.status()
	case "start", "stop":
		if len(args) != 2 {
			return ErrUsage
		}
		return c.one(ctx, args[0], args[1])
	case "kubectl":
		return c.kubectl(args[1:])
	case provisioner:
		return provisionVolumes(ctx, args[1:])
	}
	return ErrUsage
}

func (c *supervisor) findBinaries() (err error) {
	c.binaries, err = binaries(c.root)
	return err
}

// kubectl becomes kubectl as administrator.
func (c *supervisor) kubectl(args []string) error {
	if err := c.findBinaries(); err != nil {
		return err
	}
	path := filepath.Join(c.binaries, "kubectl")
	return syscall.Exec(path, append([]string{path, "--kubeconfig", c.kubeconfig()}, args...), os.Environ())
}

// lock lets one command at a time work on the directory. One with files that are not a cluster's is left alone, whatever
// CLUSTER_DIR was set to by mistake. The lock ends with this process; what it starts does not inherit it.
func (c *supervisor) lock() error {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	foreign := func(e fs.DirEntry) bool { return e.Name() != ".lock" }
	if !exists(c.path(".is-cluster")) && slices.ContainsFunc(entries, foreign) {
		return fmt.Errorf("CLUSTER_DIR: %s holds files of something else; name an empty directory", c.dir)
	}
	file, err := os.OpenFile(c.path(".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	c.locked = file
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		switch err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil:
			return nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return err
		case time.Now().After(deadline):
			return fmt.Errorf("another command has been working on %s for five minutes", c.dir)
		}
	}
}

// buildPrograms builds our two programs.
func (c *supervisor) buildPrograms() error {
	const text = "building jobset-apiserver and jobset-controller"
	say(text)
	defer every(15*time.Second, func(passed time.Duration) { say(fmt.Sprintf("%s ... %ds", text, int(passed.Seconds()))) })()
	cmd := exec.Command("make", "--no-print-directory", "-s", "-C", c.root, "build")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("our programs do not build: %w", err)
	}
	return nil
}

// every calls f after each period until the returned function is called.
func every(period time.Duration, f func(passed time.Duration)) (stop func()) {
	start, done := time.Now(), make(chan struct{})
	ticker := time.NewTicker(period)
	go func() {
		for {
			select {
			case <-ticker.C:
				f(time.Since(start))
			case <-done:
				return
			}
		}
	}()
	return func() { ticker.Stop(); close(done) }
}

func (c *supervisor) up(ctx context.Context) error {
	start := time.Now()
	if err := errors.Join(c.findBinaries(), c.findNodeBinaries(), c.lock()); err != nil {
		return err
	}
	for _, dir := range []string{"logs", "pids", "pki", "ports"} {
		if err := os.MkdirAll(c.path(dir), 0o755); err != nil {
			return err
		}
	}
	if err := errors.Join(writeFile(c.path(".is-cluster"), ""), c.save()); err != nil {
		return err
	}
	if err := c.unfinished(func() error { return c.upAll(ctx) }); err != nil {
		return err
	}
	say(fmt.Sprintf("cluster %s is up (%ds)", c.name, int(time.Since(start).Seconds())))
	fmt.Printf("kubeconfig: %s\nlogs:       %s/\n", c.kubeconfig(), c.path("logs"))
	return nil
}

func (c *supervisor) upAll(ctx context.Context) error {
	steps := []func() error{
		func() error { return c.upControlPlane(ctx) },
		func() error { return c.upNodes(ctx) },
		func() error { return c.upRealNodes(ctx) },
	}
	switch {
	case c.components == noComponents:
	case c.components == imagesOnly:
		steps = append(steps, func() error { return c.prepareInstallation(ctx) })
	case c.realNodes > 0:
		steps = append(steps, func() error { return c.install(ctx) })
	default:
		if c.build {
			steps = slices.Insert(steps, 0, c.buildPrograms)
		}
		steps = append(steps, c.permissions,
			func() error { return c.writeKubeconfig(ctx, "jobset-apiserver", "apiserver") },
			func() error { return c.writeKubeconfig(ctx, "jobset-controller-manager", "controller") },
			func() error { return c.upAPIServer(ctx) },
			func() error { return c.upController(ctx) })
	}
	steps = append(steps, func() error { return c.controllersWork(ctx) })
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// unfinished leaves a file after a start that did not get to its end; down then keeps the logs that say why.
func (c *supervisor) unfinished(start func() error) error {
	if err := writeFile(c.path("unfinished"), ""); err != nil {
		return err
	}
	if err := start(); err != nil {
		return err
	}
	return os.Remove(c.path("unfinished"))
}

func (c *supervisor) one(ctx context.Context, action, name string) error {
	component, known := components[name]
	if !known {
		return fmt.Errorf("%s: %q must be apiserver, controller or etcd", action, name)
	}
	if !exists(c.path("created")) {
		return c.noCluster()
	}
	if err := errors.Join(c.findBinaries(), c.lock()); err != nil {
		return err
	}
	if action == "stop" {
		if pid, ok := c.pid(component.name); ok {
			return c.stop(30*time.Second, pid)
		}
		return nil
	}
	if name == "etcd" && c.storage != etcdStorage {
		return fmt.Errorf("start etcd: this cluster was created with CLUSTER_STORAGE=%s", c.storage)
	}
	var err error
	if c.admin, err = newAdmin(c.kubeconfig()); err != nil {
		return err
	}
	start := map[string]func(context.Context) error{"apiserver": c.upAPIServer, "controller": c.upController, "etcd": c.upEtcd}[name]
	return c.unfinished(func() error { return start(ctx) })
}

func (c *supervisor) noCluster() error {
	return fmt.Errorf("no cluster in %s; start one with: hack/cluster.sh up", c.dir)
}
