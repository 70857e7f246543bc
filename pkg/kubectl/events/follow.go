// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// follow calls show for each event after the version, until the context ends. A watch that ends goes on from its last event; what is lost
// between, because the server keeps no such old version, is listed again.
func (r *reader) follow(ctx context.Context, version string, show func(Event) error) error {
	since := time.Now()
	return cli.Repeat(ctx, "events", func(ctx context.Context) (progress bool, err error) {
		if version == "" {
			var found newest
			if found, version, err = r.list(ctx); err != nil {
				return false, err
			}
			for _, e := range found.events {
				if e.Time.After(since) {
					if err := show(e); err != nil {
						return false, cli.OutputError{Err: err}
					}
				}
			}
		}
		before := version
		version, err = r.watch(ctx, version, func(e Event) error {
			since = e.Time.Time
			return show(e)
		})
		progress = version != before
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			version = ""
		}
		return progress, err
	})
}

// watch calls show for each event until the server ends the watch. It returns the version of the last.
func (r *reader) watch(ctx context.Context, version string, show func(Event) error) (string, error) {
	events, err := r.clients.Kube.CoreV1().Events(r.clients.Namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: version,
		AllowWatchBookmarks: true})
	if err != nil {
		return version, fmt.Errorf("watching events: %w", err)
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return version, ctx.Err()
		case next, open := <-events.ResultChan():
			if !open {
				return version, nil
			}
			if next.Type == watch.Error {
				return version, apierrors.FromObject(next.Object)
			}
			if object, err := meta.Accessor(next.Object); err == nil {
				version = object.GetResourceVersion()
			}
			if err := r.showWanted(next, show); err != nil {
				return version, err
			}
		}
	}
}

// showWanted shows what a watch returned if it is a new or changed event that the user wants to see.
func (r *reader) showWanted(next watch.Event, show func(Event) error) error {
	e, is := next.Object.(*corev1.Event)
	if !is || next.Type == watch.Bookmark || next.Type == watch.Deleted || !r.wanted(e) {
		return nil
	}
	if err := show(newEvent(e)); err != nil {
		return cli.OutputError{Err: err}
	}
	return nil
}
