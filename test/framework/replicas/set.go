// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// Readiness is how soon the balancer learns what becomes of a server.
type Readiness struct {
	// Path is what the probe asks for. An empty one is /readyz.
	Path string
	// Period, Timeout and Failures configure the readiness probe.
	Period, Timeout time.Duration
	Failures        int
	// Propagation is the time between a change and its effect on new connections.
	Propagation time.Duration
}

var (
	// Stock has the probe of artifacts/base/apiserver.yaml.
	Stock = Readiness{Period: 5 * time.Second, Timeout: 5 * time.Second, Failures: 2, Propagation: time.Second}
	// Quick notices sooner, so that tests take less time.
	Quick = Readiness{Period: time.Second, Timeout: 5 * time.Second, Failures: 2, Propagation: time.Second}
)

// Settings are what all servers of a set have in common.
type Settings struct {
	// Binary is jobset-apiserver.
	Binary string
	// Kubeconfig is the kubeconfig of its service account.
	Kubeconfig string
	// Dir is for logs and certificates.
	Dir string
	// Flags choose the storage and more.
	Flags     []string
	Readiness Readiness
	// Hosts are the addresses of the servers by their ordinals; empty if all have 127.0.0.1.
	Hosts []string
	// StartOn starts the program of the server with an ordinal, such as on a host of its own; nil for this machine.
	StartOn func(ordinal int, start func() error) error
	// FlagsOf returns more flags for the server with an ordinal; nil for none.
	FlagsOf func(ordinal int) []string
	// ServingFlags are for servers that make their certificate themselves, which readiness probes do not verify.
	ServingFlags []string
}

// Set is a number of servers behind a balancer.
type Set struct {
	*Balancer
	// CA signed the certificate that all servers have.
	CA []byte
	// Servers are the servers that are not replaced.
	Servers []*Server

	settings          Settings
	certFile, keyFile string
	count             int
	running           sync.WaitGroup
}

// Start starts that many servers and waits until all of them are endpoints.
func Start(ctx context.Context, settings Settings, size int) (*Set, error) {
	s, err := Prepare(settings)
	if err != nil {
		return nil, err
	}
	if err := s.StartAll(ctx, size); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Prepare returns a set without servers, whose balancer listens.
func Prepare(settings Settings) (*Set, error) {
	authority, err := framework.NewAuthority("jobset-apiserver")
	if err != nil {
		return nil, err
	}
	s := &Set{CA: authority.CA(), settings: settings}
	if _, s.certFile, s.keyFile, err = authority.WriteServer(filepath.Join(settings.Dir, "tls"), apiservice.Hosts()...); err != nil {
		return nil, err
	}
	ports, err := localcluster.FreePorts(1)
	if err != nil {
		return nil, err
	}
	s.Balancer, err = newBalancer("127.0.0.1:" + ports[0])
	return s, err
}

// StartAll starts that many servers at once and waits until all of them are endpoints.
func (s *Set) StartAll(ctx context.Context, size int) error {
	for range size {
		server, err := s.newServer()
		if err != nil {
			return err
		}
		if err := server.Start(); err != nil {
			return err
		}
		s.Servers = append(s.Servers, server)
	}
	return s.AwaitEndpoints(ctx)
}

// AwaitEndpoints waits until all servers are endpoints.
func (s *Set) AwaitEndpoints(ctx context.Context) error {
	var errs []error
	for _, server := range s.Servers {
		errs = append(errs, server.AwaitEndpoint(ctx))
	}
	return errors.Join(errs...)
}

// Close kills all servers. Their logs stay.
func (s *Set) Close() {
	for _, server := range s.Servers {
		server.Kill()
	}
	s.running.Wait()
	s.Balancer.Close()
}

// Replace replaces one server by one of another program, as Surge replaces each.
func (s *Set) Replace(ctx context.Context, index int, binary string) error {
	old := s.Servers[index]
	s.settings.Binary = binary
	next, err := s.newServer()
	if err == nil {
		err = next.Start()
	}
	if err == nil {
		err = next.AwaitEndpoint(ctx)
	}
	if err != nil {
		return fmt.Errorf("replacing %s: %w", old.Name, err)
	}
	s.Servers[index] = next
	return old.Terminate()
}

// Surge replaces one server after the other as a Deployment with maxSurge 1 and maxUnavailable 0 does: a new one is ready
// before an old one is asked to end, and the next one does not wait for the end of that.
func (s *Set) Surge(ctx context.Context) error {
	var ending sync.WaitGroup
	errs := make([]error, len(s.Servers))
	for i, old := range s.Servers {
		next, err := s.newServer()
		if err == nil {
			err = next.Start()
		}
		if err == nil {
			err = next.AwaitEndpoint(ctx)
		}
		if err != nil {
			ending.Wait()
			return errors.Join(append(errs, fmt.Errorf("replacing %s: %w", old.Name, err))...)
		}
		s.Servers[i] = next
		ending.Go(func() { errs[i] = old.Terminate() })
	}
	ending.Wait()
	return errors.Join(errs...)
}

// Restart ends one server after the other and starts it again, as a Deployment with maxUnavailable 1 and maxSurge 0 does.
func (s *Set) Restart(ctx context.Context) error {
	for _, server := range s.Servers {
		if err := server.Terminate(); err != nil {
			return err
		}
		if err := server.Start(); err != nil {
			return err
		}
		if err := server.AwaitEndpoint(ctx); err != nil {
			return err
		}
	}
	return nil
}
