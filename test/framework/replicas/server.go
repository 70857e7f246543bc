// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

const (
	// GracePeriod is terminationGracePeriodSeconds in artifacts/base/apiserver.yaml.
	GracePeriod = 100 * time.Second
	// slowness is how many times longer than allowed the end may take on a machine that does other things too.
	slowness = 3
)

// Server is one jobset-apiserver. A server that was replaced is not started again.
type Server struct {
	Name string
	Port int

	ordinal int
	host    string

	set    *Set
	client *http.Client

	mu      sync.Mutex
	process *framework.Process
	// leaving is closed when the process is asked to end.
	leaving chan struct{}
	// gone is closed when the end of the process has had its effect on the endpoints.
	gone chan struct{}
}

func (s *Set) newServer() (*Server, error) {
	ports, err := localcluster.FreePorts(1)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(ports[0])
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.CA)
	settings, ordinal, host := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, s.count, "127.0.0.1"
	if ordinal < len(s.settings.Hosts) {
		host = s.settings.Hosts[ordinal]
	}
	settings.InsecureSkipVerify = len(s.settings.ServingFlags) > 0
	s.count++
	return &Server{
		Name: fmt.Sprintf("server-%d", s.count), Port: port, ordinal: ordinal, host: host, set: s,
		// Each probe of the kubelet makes a connection of its own.
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: settings}},
	}, nil
}

// flags are all flags of the server.
func (s *Server) flags() []string {
	settings := s.set.settings
	flags := []string{"--secure-port=" + strconv.Itoa(s.Port), "--bind-address=" + s.host, "--kubeconfig=" + settings.Kubeconfig, "--v=2"}
	if len(settings.ServingFlags) == 0 {
		flags = append(flags, "--tls-cert-file="+s.set.certFile, "--tls-private-key-file="+s.set.keyFile)
	}
	flags = append(append(flags, settings.ServingFlags...), settings.Flags...)
	if settings.FlagsOf != nil {
		flags = append(flags, settings.FlagsOf(s.ordinal)...)
	}
	return flags
}

// Address is where the server itself listens.
func (s *Server) Address() string { return net.JoinHostPort(s.host, strconv.Itoa(s.Port)) }

// LogFile has the output of the server.
func (s *Server) LogFile() string { return filepath.Join(s.set.settings.Dir, s.Name+".log") }

// Start starts the server, which must not run. The probe makes it an endpoint later.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone != nil {
		<-s.gone
	}
	process, err := s.launch()
	if err != nil {
		return err
	}
	s.process, s.leaving, s.gone = process, make(chan struct{}), make(chan struct{})
	leaving, gone := s.leaving, s.gone
	s.set.running.Go(func() {
		defer close(gone)
		s.observe(process, leaving)
	})
	return nil
}

func (s *Server) launch() (process *framework.Process, err error) {
	start := func() (err error) {
		process, err = framework.StartProcess(s.LogFile(), s.set.settings.Binary, s.flags()...)
		return err
	}
	if on := s.set.settings.StartOn; on != nil {
		return process, on(s.ordinal, start)
	}
	return process, start()
}

// AwaitEndpoint waits until the server is an endpoint.
func (s *Server) AwaitEndpoint(ctx context.Context) error {
	process := s.Process()
	return process.Await(ctx, "is an endpoint", func(context.Context) error {
		if s.set.Balancer.has(s.Address()) {
			return nil
		}
		return errors.New("it is not ready")
	})
}

// Process is the process that was started last.
func (s *Server) Process() *framework.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// Terminate ends the server as the deletion of its pod does, and waits for its end.
func (s *Server) Terminate() error {
	s.mu.Lock()
	process := s.process
	close(s.leaving)
	s.mu.Unlock()
	began := time.Now()
	if err := process.Terminate(); err != nil {
		return fmt.Errorf("ending %s: %w", s.Name, err)
	}
	if took := time.Since(began); took > slowness*GracePeriod {
		return fmt.Errorf("ending %s took %s, must take less than the %s of its pod", s.Name, took, GracePeriod)
	}
	return nil
}

// Kill ends the server with SIGKILL.
func (s *Server) Kill() { s.Process().Kill() }

// Pause stops the server with SIGSTOP: its connections stay, and nothing is answered.
func (s *Server) Pause() error { return s.Process().Signal(syscall.SIGSTOP) }

// Resume ends a pause.
func (s *Server) Resume() error { return s.Process().Signal(syscall.SIGCONT) }

// observe makes the server an endpoint while it is ready, until it is asked to end or ends.
func (s *Server) observe(process *framework.Process, leaving <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	probing := make(chan struct{})
	go func() {
		defer close(probing)
		s.probe(ctx)
	}()
	select {
	case <-process.Done():
	case <-leaving:
	}
	cancel()
	<-probing
	time.Sleep(s.set.settings.Readiness.Propagation)
	s.set.Balancer.set(s.Address(), false)
}

// probe is the readiness probe of the kubelet.
func (s *Server) probe(ctx context.Context) {
	failures := 0
	readiness := s.set.settings.Readiness
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := s.ready(ctx); err == nil {
			failures = 0
			s.set.Balancer.set(s.Address(), true)
		} else if failures++; failures >= readiness.Failures && ctx.Err() == nil {
			s.set.Balancer.set(s.Address(), false)
		}
	}, readiness.Period)
}

func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.set.settings.Readiness.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.Address()+cmp.Or(s.set.settings.Readiness.Path, "/readyz"), nil)
	if err != nil {
		return err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body) // the status says it all
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}
