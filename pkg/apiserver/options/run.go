// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/events"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/storecheck"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/unreadable"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/tls/servingcert"
)

// Run serves until the context ends and everything was drained. It waits for what it needs of others, and answers meanwhile.
func (o *Options) Run(ctx context.Context) error {
	if err := o.run(ctx); !errors.Is(err, errLeft) {
		return err
	}
	klog.FromContext(ctx).Info("Ending, before anything was served")
	return nil
}

// run starts in the order of how cheap it is to find out that something is wrong, and ends in the reverse order, so that the store stops
// last. The embedded etcd needs no other server, so that it starts while the main API is away: the server serves sooner then. An external
// etcd comes after the main API, which has the serving certificate: without it, kube-apiserver would not ask this server about pods.
func (o *Options) run(ctx context.Context) error {
	listener, err := o.listen()
	if err != nil {
		return err
	}
	defer listener.Close()
	if err = o.applySelfSigned(ctx); err == nil {
		o.startup, err = o.startWaiting(listener)
	}
	if err != nil {
		return err
	}
	defer o.startup.Close()
	store, err := o.Storage.open(o.Recommended.Etcd)
	if err != nil {
		return err
	}
	if store != nil {
		defer store.Close()
	}
	o.meanwhile = sync.OnceValue(func() error { return o.startEmbedded(ctx, store) })
	main, err := o.newClients(ctx)
	if err != nil {
		return err
	}
	if err := o.applyManagedCert(ctx, main); err != nil {
		return err
	}
	config, err := o.config(ctx, main)
	if err != nil {
		return err
	}
	told := events.Start(ctx, componentName, main.kube.EventsV1())
	defer told.Close()
	config.Recorder, config.Revisions = told, revisionReader{client: main.kube.AppsV1()}
	if err := o.awaitStore(ctx, store); err != nil {
		return err
	}
	guard, err := o.newStoreCheck(config, main)
	if err != nil {
		return err
	}
	objects := unreadable.NewObjects()
	if err := o.applyStorage(config, store, guard, objects); err != nil {
		return err
	}
	o.applyWebhooks(config)
	config.Filters.Leaving = newLeaving(ctx, config.Generic.ShutdownDelayDuration).handler
	o.applySelfCheck(config, main, store != nil, objects)
	defer o.backUp(ctx, store, guard)()
	return serve(ctx, config, store, guard)
}

// awaitStore waits until the embedded etcd has started, or until an external one answers.
func (o *Options) awaitStore(ctx context.Context, store *etcd.Server) error {
	if store != nil {
		return o.meanwhile()
	}
	return openExternal(ctx, &o.Recommended.Etcd.StorageConfig.Transport, o.startup)
}

// startEmbedded starts the embedded etcd, if there is one, and saves what another version of the server has written before this one does.
func (o *Options) startEmbedded(ctx context.Context, store *etcd.Server) error {
	if store == nil {
		return nil
	}
	if err := store.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return errLeft
		}
		return wrapFlagError("data-dir", err, "if its content is damaged, restore it from a backup")
	}
	return o.backUpBeforeVersion(ctx, store)
}

// applySelfSigned uses the self-signed pair, unless there is another. One that cannot be renewed is used until it ends:
// until then that is an error in the log, twice a day.
func (o *Options) applySelfSigned(ctx context.Context) error {
	dir := o.selfSigned()
	if dir == nil {
		return nil
	}
	if err := dir.Ensure(); err != nil && !dir.Usable() {
		if errors.Is(err, servingcert.ErrIncomplete) {
			return flagError("cert-dir", "%w", err)
		}
		return wrapFlagError("cert-dir", err, "use a directory that this process can write to")
	}
	cert := &o.Recommended.SecureServing.ServerCert
	cert.CertKey.CertFile, cert.CertKey.KeyFile = dir.CertFile(), dir.KeyFile()
	go dir.Run(ctx)
	return nil
}

func serve(ctx context.Context, config *apiserver.Config, store *etcd.Server, guard *storecheck.Guard) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	checked := make(chan error, 1)
	if guard != nil {
		defer guard.Close(ctx)
		// The watch caches wait for it, so it begins before them.
		go func() { checked <- guard.Run(ctx) }()
	}
	s, err := config.Complete().New()
	if err != nil {
		return err
	}
	end := func(err error) {
		s.ShutdownDelayDuration = 0
		stop(err)
	}
	if store != nil {
		go watchStore(ctx, store, end)
	}
	if guard != nil {
		go func() {
			if err := <-checked; err != nil {
				end(err)
			}
		}()
	}
	klog.FromContext(ctx).Info("Serving", "address", config.Generic.SecureServing.Listener.Addr(), "version",
		config.Generic.EffectiveVersion.Info().GitVersion)
	if err := s.PrepareRun().RunWithContext(ctx); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// watchStore ends the process when the embedded etcd stops by itself: nothing can be served without it, so the delay
// that lets clients move away is left out.
func watchStore(ctx context.Context, store *etcd.Server, end func(error)) {
	if err := store.Wait(ctx); err != nil {
		end(err)
	}
}

// listen takes the port before anything else is started.
func (o *Options) listen() (net.Listener, error) {
	serving := o.Recommended.SecureServing
	address := net.JoinHostPort(serving.BindAddress.String(), strconv.Itoa(serving.BindPort))
	listener, _, err := genericoptions.CreateListener(serving.BindNetwork, address, net.ListenConfig{})
	if err != nil {
		var refused *net.OpError
		if errors.As(err, &refused) {
			err = refused
		}
		return nil, wrapFlagError("secure-port", err, "stop what uses the port, or choose another port or another --bind-address")
	}
	return listener, nil
}

// leaving makes clients move to other servers before this one ends. kube-apiserver sends all requests over one
// connection, which it keeps while the server is only not ready: at the end of the delay requests would still come, and
// be refused. So in the last part of the delay, when the server is no endpoint any more, each response also asks the
// client to open another connection.
type leaving struct{ begun atomic.Bool }

// newLeaving lets clients move when four fifths of the shutdown delay are over: with the probes of the manifests,
// twelve of fifteen seconds, in which also a server whose pod was not deleted is found not to be ready.
func newLeaving(ctx context.Context, delay time.Duration) *leaving {
	l := &leaving{}
	context.AfterFunc(ctx, func() { time.AfterFunc(delay*4/5, l.begin) })
	return l
}

func (l *leaving) begin() { l.begun.Store(true) }

// handler sends GOAWAY with the response in HTTP/2, and closes the connection after it in HTTP/1.1. Requests that are
// under way are answered.
func (l *leaving) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if l.begun.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, req)
	})
}
