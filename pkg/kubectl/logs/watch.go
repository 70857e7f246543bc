// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// follow reads the logs of the set until it has finished, and all of them have ended.
func follow(ctx context.Context, c *cli.Clients, s *Source, f *follower) error {
	ctx, cancel := context.WithCancelCause(ctx)
	// What is left of reading ends with this function.
	defer func() {
		cancel(nil)
		<-f.close()
	}()
	finished := make(chan struct{}, 1)
	changed := func(over bool) {
		if over {
			select {
			case finished <- struct{}{}:
			default:
			}
		}
	}
	pods, podsSeen, err := watchPods(ctx, c, s, f, cancel)
	if err != nil {
		return err
	}
	sets, setSeen, err := s.watch(c, changed, cancel)
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go pods.RunWithContext(watching)
	go sets.RunWithContext(watching)
	if cache.WaitForCacheSync(ctx.Done(), podsSeen.HasSynced, setSeen.HasSynced) {
		f.begin()
		if len(sets.GetStore().List()) == 0 {
			changed(true)
		}
	}
	select {
	case <-finished:
	case <-ctx.Done():
		return given(ctx)
	case <-f.out.broken:
		return f.out.err
	}
	// The watch of the pods may be behind that of the set.
	if err := last(ctx, c, s, f); err != nil {
		return err
	}
	return ended(ctx, f)
}

// given is why reading was given up: nil if the user wanted it so.
func given(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != context.Canceled {
		return cause
	}
	return nil
}

// last looks at the pods once more after the set has finished.
func last(ctx context.Context, c *cli.Clients, s *Source, f *follower) error {
	pods, err := c.Kube.CoreV1().Pods(s.GetNamespace()).List(ctx, metav1.ListOptions{LabelSelector: s.selector})
	if err != nil {
		return fmt.Errorf("listing the pods of %s: %w", s.title(), err)
	}
	for i := range pods.Items {
		f.see(ctx, &pods.Items[i])
	}
	return nil
}

// ended waits for all logs.
func ended(ctx context.Context, f *follower) error {
	select {
	case <-f.close():
	case <-ctx.Done():
		return given(ctx)
	case <-f.out.broken:
		return f.out.err
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.failed > 0 {
		return cli.ErrSilent
	}
	return nil
}

func watchPods(ctx context.Context, c *cli.Clients, s *Source, f *follower,
	giveUp context.CancelCauseFunc) (cache.SharedIndexInformer, cache.ResourceEventHandlerRegistration, error) {
	informer := coreinformers.NewFilteredPodInformer(c.Kube, s.GetNamespace(), 0, nil,
		func(o *metav1.ListOptions) { o.LabelSelector = s.selector })
	if err := onRefusal(informer, "pods", giveUp); err != nil {
		return nil, nil, err
	}
	seen, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { f.see(ctx, obj.(*corev1.Pod)) },
		UpdateFunc: func(_, obj any) { f.see(ctx, obj.(*corev1.Pod)) },
		DeleteFunc: func(obj any) {
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			if pod, ok := obj.(*corev1.Pod); ok {
				f.gone(pod)
			}
		},
	})
	return informer, seen, err
}

// watch calls changed with whether the object will have no new pods.
func (s *Source) watch(c *cli.Clients, changed func(over bool),
	giveUp context.CancelCauseFunc) (cache.SharedIndexInformer, cache.ResourceEventHandlerRegistration, error) {
	informer := s.informer(c.JobSets, c.Namespace, 0, nil, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.GetName()).String()
	})
	if err := onRefusal(informer, s.kind.Names[1], giveUp); err != nil {
		return nil, nil, err
	}
	see := func(obj any) { changed(s.over(obj)) }
	seen, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: see, UpdateFunc: func(_, obj any) { see(obj) }, DeleteFunc: func(any) { changed(true) },
	})
	return informer, seen, err
}

// onRefusal ends everything when the user may not watch. Other errors pass: the informer tries again.
func onRefusal(informer cache.SharedIndexInformer, what string, giveUp context.CancelCauseFunc) error {
	return informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		if refused(err) {
			giveUp(errForbidden(what, err))
		}
	})
}
