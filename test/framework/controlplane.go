// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package framework runs the parts that the integration tests need: the main control plane (etcd and kube-apiserver),
// the real jobset-apiserver with the permissions that its manifests give it, and the APIService between them.
package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/suite"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// ServerUser is the identity of jobset-apiserver in the main cluster.
const ServerUser = "system:serviceaccount:jobset-system:jobset-apiserver"

// ControlPlane is a main cluster without controllers.
type ControlPlane struct {
	// Config is the administrator's.
	Config *rest.Config
	// Kube and Dynamic are clients of the administrator.
	Kube    kubernetes.Interface
	Dynamic dynamic.Interface
	// FrontProxy is the authority of the certificate with which kube-apiserver forwards requests, and FrontProxyDir the directory of both:
	// ca.crt, client.crt and client.key.
	FrontProxy    *Authority
	FrontProxyDir string
	// Binary is the jobset-apiserver that the tests run, and Version the version that our programs have.
	Binary, Version string

	root, dir, binaries string
	// etcdDir is where etcd stores its data.
	etcdDir     string
	environment *envtest.Environment
}

// Start runs a main cluster, built from what hack/ensure-binaries.sh provides, and provides our programs.
func Start(ctx context.Context) (_ *ControlPlane, err error) {
	ctrllog.SetLogger(logr.Discard())
	p := &ControlPlane{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.KeepLogs(), p.Stop())
		}
	}()
	if p.root, err = output(ctx, "", "go", "list", "-m", "-f", "{{.Dir}}"); err != nil {
		return nil, err
	}
	if p.dir, err = os.MkdirTemp("", "jobset-integration-"); err != nil {
		return nil, err
	}
	if p.binaries, err = localcluster.TestBinaries(p.root); err != nil {
		return nil, err
	}
	if err := providePrograms(ctx, p.root, p.dir); err != nil {
		return nil, err
	}
	p.Binary = p.Own("jobset-apiserver")
	if p.Version, err = versionOf(ctx, p.Binary); err != nil {
		return nil, err
	}
	if err := p.startMain(); err != nil {
		return nil, err
	}
	return p, p.installPermissions(ctx)
}

// Main runs the tests of a package in a main cluster, which is started before them and stopped after them, and exits with their code. It exits
// with 1 if there is no test to run, or if the cluster does not start or stop.
func Main(m *testing.M, name string, use func(*ControlPlane)) {
	suite.Main(name, func() (code int, err error) {
		if err := suite.Check(m); err != nil {
			return 0, err
		}
		p, err := Start(context.Background())
		if err != nil {
			return 0, fmt.Errorf("starting the control plane: %w", err)
		}
		use(p)
		if code = m.Run(); code != 0 {
			err = p.KeepLogs()
		}
		if stop := p.Stop(); stop != nil {
			err = errors.Join(err, fmt.Errorf("stopping the control plane: %w", stop))
		}
		return code, err
	})
}

func (p *ControlPlane) startMain() (err error) {
	if p.FrontProxy, err = NewAuthority("front-proxy"); err != nil {
		return err
	}
	p.FrontProxyDir = filepath.Join(p.dir, "front-proxy")
	caFile, certFile, keyFile, err := p.FrontProxy.WriteClient(p.FrontProxyDir, "front-proxy-client")
	if err != nil {
		return err
	}
	admission, err := p.writeWebhookClient()
	if err != nil {
		return err
	}
	p.environment = &envtest.Environment{
		BinaryAssetsDirectory:    p.binaries,
		ControlPlaneStartTimeout: StepTimeout(),
		ControlPlaneStopTimeout:  StepTimeout(),
	}
	// The environment looks for kubectl, etcd and kube-apiserver in this directory, unless told by the environment.
	apiserver := p.environment.ControlPlane.GetAPIServer()
	apiserver.Configure().
		Set("requestheader-client-ca-file", caFile).
		Set("requestheader-allowed-names", "front-proxy-client").
		Set("requestheader-username-headers", "X-Remote-User").
		Set("requestheader-uid-headers", "X-Remote-Uid").
		Set("requestheader-group-headers", "X-Remote-Group").
		Set("requestheader-extra-headers-prefix", "X-Remote-Extra-").
		Set("admission-control-config-file", admission).
		Set("proxy-client-cert-file", certFile).
		Set("proxy-client-key-file", keyFile).
		Set("enable-aggregator-routing", "false")
	for _, flag := range localcluster.LocalAPIServerFlags() {
		apiserver.Configure().Set(flag[0], flag[1])
	}
	// The environment has etcd write without fsync.
	sweepMemory()
	if p.etcdDir, err = memoryDir(); err != nil {
		return err
	}
	etcd := &envtest.Etcd{DataDir: p.etcdDir}
	p.environment.ControlPlane.Etcd = etcd
	for name, out := range map[string][]*io.Writer{
		"etcd": {&etcd.Out, &etcd.Err}, "kube-apiserver": {&apiserver.Out, &apiserver.Err},
	} {
		if err := p.writeLog(name, out...); err != nil {
			return err
		}
	}
	if p.Config, err = startFrugally(p.environment); err != nil {
		return fmt.Errorf("starting the main control plane: %w", err)
	}
	p.Config.QPS = -1
	return p.makeClients()
}

func (p *ControlPlane) makeClients() (err error) {
	if p.Kube, err = kubernetes.NewForConfig(p.Config); err != nil {
		return err
	}
	p.Dynamic, err = dynamic.NewForConfig(p.Config)
	return err
}

// writeLog has the program write its output to a file.
func (p *ControlPlane) writeLog(name string, streams ...*io.Writer) error {
	file, err := os.Create(filepath.Join(p.dir, name+".log"))
	if err != nil {
		return err
	}
	for _, stream := range streams {
		*stream = file
	}
	return nil
}

// installPermissions gives the server what its manifests give it, so that the tests notice when that is too little.
func (p *ControlPlane) installPermissions(ctx context.Context) error {
	admin, err := p.environment.ControlPlane.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return err
	}
	kubeconfig, err := p.writeKubeconfig(admin)
	if err != nil {
		return err
	}
	_, err = output(ctx, p.root, filepath.Join(p.binaries, "kubectl"), "--kubeconfig", kubeconfig, "apply", "-k", "artifacts/base/rbac")
	return err
}

// Kubeconfig writes credentials of a user and returns the file.
func (p *ControlPlane) Kubeconfig(name string, groups ...string) (string, error) {
	user, err := p.AddUser(name, groups...)
	if err != nil {
		return "", err
	}
	return p.writeKubeconfig(user)
}

// AddUser makes a client certificate for a user of the main cluster.
func (p *ControlPlane) AddUser(name string, groups ...string) (*envtest.AuthenticatedUser, error) {
	return p.environment.ControlPlane.AddUser(envtest.User{Name: name, Groups: groups}, nil)
}

func (p *ControlPlane) writeKubeconfig(user *envtest.AuthenticatedUser) (string, error) {
	content, err := user.KubeConfig()
	if err != nil {
		return "", err
	}
	file, err := os.CreateTemp(p.dir, "*.kubeconfig")
	if err != nil {
		return "", err
	}
	defer file.Close()
	_, err = file.Write(content)
	return file.Name(), err
}

// Stop ends everything and removes its files.
func (p *ControlPlane) Stop() error {
	var err error
	if p.environment != nil {
		err = p.environment.Stop()
	}
	for _, dir := range []string{p.dir, p.etcdDir} {
		if dir != "" {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	return err
}

// EtcdBinary is an etcd for tests of external storage.
func (p *ControlPlane) EtcdBinary() string { return p.Program("etcd") }

// Program is the path of a program that comes with the control plane, such as kubectl or etcdutl.
func (p *ControlPlane) Program(name string) string { return filepath.Join(p.binaries, name) }

// Own is the path of one of our programs: jobset-apiserver, jobset-controller or kubectl-jobset. All have the same version.
func (p *ControlPlane) Own(name string) string { return filepath.Join(p.dir, name) }

func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("running %s %s: %w: %s", name, strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// startFrugally starts etcd and kube-apiserver with other settings of the runtime than the tests and our own programs have.
func startFrugally(environment *envtest.Environment) (config *rest.Config, err error) {
	for name, value := range localcluster.KubeRuntime(localcluster.KubeGOGC) {
		before, found := os.LookupEnv(name)
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
		defer func() {
			restore := os.Unsetenv(name)
			if found {
				restore = os.Setenv(name, before)
			}
			err = errors.Join(err, restore)
		}()
	}
	return environment.Start()
}
