// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// controlPlane are the programs of Kubernetes. kwokctl writes their certificates and command lines once, on creation, and
// starts what does not run.
var controlPlane = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

func (c *supervisor) kwokPath(elements ...string) string {
	return c.path(append([]string{"kwok", "clusters", c.name}, elements...)...)
}

// kwokctl runs in a session of its own: what it starts stays in its process group and must not end with the group of this program on Ctrl-C.
func (c *supervisor) kwokctl(args ...string) error {
	version, err := Version(c.binaries)
	if err != nil {
		return err
	}
	err = c.logged("kwokctl", func(log *os.File) error {
		cmd := exec.Command(filepath.Join(c.binaries, "kwokctl"), append([]string{"--name", c.name}, args...)...)
		cmd.Env = append(os.Environ(), "PATH="+c.binaries+":"+os.Getenv("PATH"), "KWOK_WORKDIR="+c.path("kwok"), "KWOK_KUBE_VERSION="+version)
		cmd.Env = append(cmd.Env, c.kubeEnvironment()...)
		cmd.Stdout, cmd.Stderr = log, log
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return cmd.Run()
	})
	if err != nil {
		return c.failure("kwokctl", fmt.Errorf("the control plane did not start: %w", err))
	}
	return nil
}

// kubeEnvironment returns the variables of the programs of Kubernetes, etcd and KWOK.
func (c *supervisor) kubeEnvironment() (environment []string) {
	if c.kubeGOGC != "" {
		for name, value := range KubeRuntime(c.kubeGOGC) {
			environment = append(environment, name+"="+value)
		}
	}
	return environment
}

// Version is the version of the programs of the control plane in a directory, such as v1.37.2. kwokctl chooses their flags by it.
func Version(binaries string) (string, error) {
	program := filepath.Join(binaries, "kube-apiserver")
	out, err := exec.Command(program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", program, err)
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "Kubernetes "), nil
}

// logged opens a log for a command that is run to its end.
func (c *supervisor) logged(name string, run func(log *os.File) error) error {
	log, err := os.OpenFile(c.log(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	return run(log)
}

func (c *supervisor) upControlPlane(ctx context.Context) error {
	if !exists(c.path("created")) {
		// What an interrupted creation left cannot be trusted to be whole.
		if err := c.stopAll(); err != nil {
			return err
		}
		if err := c.createControlPlane(); err != nil {
			return err
		}
	} else if !c.controlPlaneRuns() {
		say("starting what does not run of the control plane")
		if err := c.kwokctl("start", "cluster"); err != nil {
			return err
		}
	}
	admin, err := newAdmin(c.kubeconfig())
	if err != nil {
		return err
	}
	c.admin, c.apiPort = admin, admin.server[strings.LastIndex(admin.server, ":")+1:]
	return c.await(ctx, "kube-apiserver", "kube-apiserver is not ready", func(ctx context.Context) error {
		return admin.do(ctx, "GET", "/readyz", "", nil, nil)
	})
}

// controlPlaneRuns removes the pid files of processes that ended: kwokctl trusts them, whatever runs under that id now.
func (c *supervisor) controlPlaneRuns() bool {
	all := true
	for _, program := range controlPlane {
		if _, ok := c.pid(program); !ok {
			all = false
			_ = os.Remove(c.kwokPath("pids", program+".pid"))
		}
	}
	return all
}

// controllersWork waits for kube-controller-manager, which ends, as kube-scheduler does, if kube-apiserver takes too
// long to answer while both start on a busy machine. What has ended is started again.
func (c *supervisor) controllersWork(ctx context.Context) error {
	return c.poll(ctx, "kube-controller-manager", "kube-controller-manager makes no service accounts", func(ctx context.Context) error {
		if !c.controlPlaneRuns() {
			say("starting what has ended of the control plane")
			if err := c.kwokctl("start", "cluster"); err != nil {
				return errors.Join(errEnded, err)
			}
		}
		if err := c.startKwok(); err != nil {
			return errors.Join(errEnded, err)
		}
		return c.admin.get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", &corev1.ServiceAccount{})
	})
}

func (c *supervisor) createControlPlane() error {
	say("creating the control plane in " + c.dir)
	if err := errors.Join(os.RemoveAll(c.path("kwok")), os.RemoveAll(c.path("data")), c.reserveNetwork(), c.frontProxyCertificates()); err != nil {
		return err
	}
	version, err := Version(c.binaries)
	if err != nil {
		return err
	}
	c.addScheduling(version)
	config, err := c.kwokConfig()
	if err != nil {
		return err
	}
	if err := writeFile(c.path("kwok.yaml"), config); err != nil {
		return err
	}
	args := []string{"create", "cluster", "--runtime", "binary", "--config", c.path("kwok.yaml"), "--kubeconfig", c.path("kubeconfig.kwok"),
		"--kube-authorization", "--kube-admission", "--secure-port", "--disable-qps-limits=false", "--timeout", "120s",
		"--disable", kwokController}
	for _, program := range controlPlane {
		args = append(args, "--"+program+"-binary", filepath.Join(c.binaries, program))
	}
	if c.kubeAuditPolicy != "" {
		args = append(args, "--kube-audit-policy", c.kubeAuditPolicy)
	}
	if err := c.kwokctl(args...); err != nil {
		return err
	}
	return errors.Join(c.flattenKubeconfig(), c.linkControlPlane(), writeFile(c.path("created"), ""))
}

// frontProxyCertificates writes those with which kube-apiserver identifies itself to aggregated API servers.
func (c *supervisor) frontProxyCertificates() error {
	if exists(c.path("pki", "front-proxy-client.key")) {
		return nil
	}
	cmd := exec.Command("go", "run", "./hack/certs", "--dir", c.path("pki"))
	cmd.Dir, cmd.Stderr = c.root, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the front-proxy certificates were not written: %w", err)
	}
	return nil
}

// flattenKubeconfig writes the administrator's kubeconfig with the keys in it.
func (c *supervisor) flattenKubeconfig() error {
	config, err := clientcmd.LoadFromFile(c.path("kubeconfig.kwok"))
	if err != nil {
		return err
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return err
	}
	return errors.Join(clientcmd.WriteToFile(*config, c.kubeconfig()), os.Remove(c.path("kubeconfig.kwok")))
}

// linkControlPlane puts logs and pid files of the control plane beside those of our programs.
func (c *supervisor) linkControlPlane() error {
	var errs []error
	link := func(kind, name, as string) {
		to := c.path(kind, as)
		_ = os.Remove(to)
		errs = append(errs, os.Symlink(filepath.Join("..", "kwok", "clusters", c.name, kind, name), to))
	}
	for _, program := range controlPlane {
		link("logs", program+".log", program+".log")
		link("pids", program+".pid", program+".pid")
	}
	if c.kubeAuditPolicy != "" {
		link("logs", "audit.log", "kube-apiserver-audit.log")
	}
	return errors.Join(errs...)
}

// extraArgument is a flag of a program as kwokctl reads it.
func extraArgument(flag, value string, override bool) string {
	return fmt.Sprintf("  - {key: %s, value: %s, override: %t}\n", flag, strconv.Quote(value), override)
}

// extraArguments writes flags of a program, which the variable has.
func extraArguments(to *strings.Builder, variable string, args []string) error {
	for _, arg := range args {
		flag, value, found := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !found || !strings.HasPrefix(arg, "--") {
			return fmt.Errorf("%s: %q must have the form --flag=value", variable, arg)
		}
		to.WriteString(extraArgument(flag, value, false))
	}
	return nil
}

// kwokConfig is the configuration of kwokctl. The limits on the clients are raised, priority and fairness stays on. Flags that change what
// kube-controller-manager does, such as how it batches endpoints, keep their defaults: users of managed clusters cannot set them. A quota
// that is older than the discovery of JobSets gets its status with the next full round over the quotas, which by default
// comes after five minutes. There is one of each program, and nothing restarts it: without an election it has no lease that
// it could lose, and then end, when the machine is slow.
func (c *supervisor) kwokConfig() (string, error) {
	ports, err := FreePorts(5)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("apiVersion: config.kwok.x-k8s.io/v1alpha1\nkind: KwokctlConfiguration\noptions:\n  bindAddress: 127.0.0.1\n")
	for i, option := range []string{"etcdPort", "etcdPeerPort", "kubeApiserverPort", "kubeControllerManagerPort", "kubeSchedulerPort"} {
		fmt.Fprintf(&b, "  %s: %s\n", option, ports[i])
	}
	c.kwokOptionsForNodes(&b)
	b.WriteString("componentsPatches:\n- name: kube-apiserver\n  extraArgs:\n")
	c.kubeAPIServerArgumentsForNodes(&b)
	b.WriteString(extraArgument("proxy-client-cert-file", c.path("pki", "front-proxy-client.crt"), true))
	b.WriteString(extraArgument("proxy-client-key-file", c.path("pki", "front-proxy-client.key"), true))
	b.WriteString(extraArgument("requestheader-client-ca-file", c.path("pki", "front-proxy-ca.crt"), false))
	own := []string{
		"--requestheader-allowed-names=front-proxy-client", "--requestheader-username-headers=X-Remote-User",
		"--requestheader-uid-headers=X-Remote-Uid", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
	}
	if err := extraArguments(&b, "CLUSTER_KUBE_APISERVER_ARGS", append(own, c.kubeAPIServerArgs...)); err != nil {
		return "", err
	}
	b.WriteString(`- name: kube-controller-manager
  extraArgs:
  - {key: leader-elect, value: "false"}
  - {key: resource-quota-sync-period, value: 10s}
  - {key: kube-api-qps, value: "500"}
  - {key: kube-api-burst, value: "1000"}
`)
	if err := extraArguments(&b, "CLUSTER_KUBE_CONTROLLER_MANAGER_ARGS", c.kubeControllerManagerArgs); err != nil {
		return "", err
	}
	b.WriteString(`- name: kube-scheduler
  extraArgs:
  - {key: leader-elect, value: "false"}
  - {key: kube-api-qps, value: "500"}
  - {key: kube-api-burst, value: "1000"}
`)
	if err := extraArguments(&b, "CLUSTER_KUBE_SCHEDULER_ARGS", c.kubeSchedulerArgs); err != nil {
		return "", err
	}
	return b.String(), nil
}
