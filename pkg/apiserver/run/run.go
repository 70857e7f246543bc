// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"

	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/events"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/mainapi"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/options"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/members"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/storecheck"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/unreadable"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/tls/servingcert"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

// run is the state of one run of the server.
type run struct {
	*options.Options
	// wait asks the main API until it answers. Its startup answers on the port meanwhile.
	wait mainapi.Waiter
	// pods answers questions about pods, from the first moment.
	pods podWebhook
	// manager has the serving certificate of --tls-managed-secret, once it was read.
	manager atomic.Pointer[servingcert.Manager]
	// members are the members of the cluster of the embedded etcd; nil if it is a single one.
	members *members.Members
}

// Run serves until the context ends and everything was drained. It waits for what it needs of others, and answers meanwhile.
func Run(ctx context.Context, o *options.Options) error {
	r := &run{Options: o}
	if err := r.inOrder(ctx); !errors.Is(err, mainapi.ErrLeft) {
		return err
	}
	klog.FromContext(ctx).Info("Ending, before anything was served")
	return nil
}

// inOrder starts in the order of how cheap it is to find out that something is wrong, and ends in the reverse order, so that the store
// stops last. The embedded etcd needs no other server, so that it starts while the main API is away: the server serves sooner then. An
// external etcd comes after the main API, which has the serving certificate: without it, kube-apiserver would not ask this server about
// pods.
func (r *run) inOrder(ctx context.Context) error {
	listener, err := r.listen()
	if err != nil {
		return err
	}
	defer listener.Close()
	if err = r.applySelfSigned(ctx); err == nil {
		r.wait.Startup, err = r.startWaiting(listener)
	}
	if err != nil {
		return err
	}
	defer r.wait.Startup.Close()
	store, err := openStore(r.Options)
	if err != nil {
		return err
	}
	if store != nil {
		defer store.Close()
	}
	r.wait.Meanwhile = sync.OnceValue(func() error { return r.startEmbedded(ctx, store) })
	main, err := r.wait.Connect(ctx, r.Recommended.CoreAPI.CoreAPIKubeconfigPath, options.UserAgent())
	if err != nil {
		return err
	}
	if err := r.applyManagedCert(ctx, main); err != nil {
		return err
	}
	config, err := r.config(ctx, main)
	if err != nil {
		return err
	}
	told := events.Start(ctx, options.ComponentName, main.Kube.EventsV1())
	defer told.Close()
	config.Recorder, config.Revisions = told, mainapi.RevisionReader{Client: main.Kube.AppsV1()}
	if err := r.awaitStore(ctx, store, main, told); err != nil {
		return err
	}
	return r.overStore(ctx, config, store, main)
}

// overStore serves what the store has.
func (r *run) overStore(ctx context.Context, config *apiserver.Config, store *etcd.Server, main *mainapi.Clients) error {
	guard, err := r.newStoreCheck(config, store, main)
	if err != nil {
		return err
	}
	objects := unreadable.NewObjects()
	runs, err := r.newArchive(config, guard)
	if err != nil {
		return err
	}
	if err := r.applyStorage(config, store, guard, objects, runs); err != nil {
		return err
	}
	r.applyWebhooks(config)
	r.applyRouting(ctx, config, main)
	r.applySelfCheck(config, main, r.isSingle(store), objects)
	defer r.backUp(ctx, store, guard)()
	defer runs.Record(ctx)()
	return serve(ctx, config, store, guard)
}

// awaitStore waits until the embedded etcd has started, or until an external one answers.
func (r *run) awaitStore(ctx context.Context, store *etcd.Server, main *mainapi.Clients, told provider.Recorder) error {
	switch {
	case store == nil:
		return openExternal(ctx, &r.Recommended.Etcd.StorageConfig.Transport, r.wait.Startup)
	case r.isSingle(store):
		return r.wait.Meanwhile()
	}
	if err := r.startMember(ctx, store, main, told); err != nil {
		return err
	}
	return r.backUpBeforeVersion(ctx, store)
}

// isSingle returns whether the store is an embedded etcd with one member.
func (r *run) isSingle(store *etcd.Server) bool { return store != nil && len(r.Storage.Members) == 0 }

// startEmbedded starts the embedded etcd, if it has one member, and saves what another version of the server has written before this one
// does.
func (r *run) startEmbedded(ctx context.Context, store *etcd.Server) error {
	if !r.isSingle(store) {
		return nil
	}
	if err := store.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return mainapi.ErrLeft
		}
		return flagerror.Wrap("data-dir", err, "if its content is damaged, restore it from a backup")
	}
	return r.backUpBeforeVersion(ctx, store)
}

// applySelfSigned uses the self-signed pair, unless there is another. One that cannot be renewed is used until it ends:
// until then that is an error in the log, twice a day.
func (r *run) applySelfSigned(ctx context.Context) error {
	dir := r.SelfSigned()
	if dir == nil {
		return nil
	}
	if err := dir.Ensure(); err != nil && !dir.Usable() {
		if errors.Is(err, servingcert.ErrIncomplete) {
			return flagerror.New("cert-dir", "%w", err)
		}
		return flagerror.Wrap("cert-dir", err, "use a directory that this process can write to")
	}
	cert := &r.Recommended.SecureServing.ServerCert
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
func (r *run) listen() (net.Listener, error) {
	serving := r.Recommended.SecureServing
	address := net.JoinHostPort(serving.BindAddress.String(), strconv.Itoa(serving.BindPort))
	listener, _, err := genericoptions.CreateListener(serving.BindNetwork, address, net.ListenConfig{})
	if err != nil {
		var refused *net.OpError
		if errors.As(err, &refused) {
			err = refused
		}
		return nil, flagerror.Wrap("secure-port", err, "stop what uses the port, or choose another port or another --bind-address")
	}
	return listener, nil
}
