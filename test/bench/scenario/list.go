// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/scheme"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/informers/externalversions"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

const (
	// writers is how many clients store sets.
	writers = 16
	// listsAtATime is how many lists are one measurement.
	listsAtATime = 5
)

// encodings are what clients ask for: programs protobuf or JSON, kubectl get a table.
var encodings = []struct{ name, accept string }{
	{"json", runtime.ContentTypeJSON},
	{"protobuf", runtime.ContentTypeProtobuf},
	{"table", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"},
}

// list measures reading many sets.
func list(ctx context.Context, r *runner) error {
	if r.Beside {
		return listBeside(ctx, r)
	}
	return r.inSpace(ctx, unwatched, true, func(ctx context.Context, s *space) error {
		stored := 0
		for _, sets := range s.Sizes.Lists {
			if _, err := s.measure(ctx, fmt.Sprintf("%d: store", sets), func(ctx context.Context) error {
				return s.store(ctx, stored, sets)
			}); err != nil {
				return err
			}
			stored = sets
			for range s.Runs {
				if err := s.readAll(ctx, sets); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// store creates sets with a status, from one number to another.
func (s *space) store(ctx context.Context, from, to int) error {
	client := s.Cluster.JobSets.JobsetV1alpha2().JobSets(s.name)
	return all(ctx, to-from, writers, func(i int) error {
		js, err := client.Create(ctx, s.storedSet(from+i), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		typicalStatus(js, 0)
		_, err = client.UpdateStatus(ctx, js, metav1.UpdateOptions{})
		return err
	})
}

func (s *space) readAll(ctx context.Context, sets int) error {
	if err := s.readLists(ctx, fmt.Sprint(sets), sets); err != nil {
		return err
	}
	if err := s.informers(ctx, sets); err != nil {
		return err
	}
	return s.fanOut(ctx, sets)
}

// readLists reads all sets from cache and from the store in each encoding. The names of the phases begin with a prefix.
func (s *space) readLists(ctx context.Context, prefix string, sets int) error {
	for _, source := range []struct{ name, version string }{{"cache", "0"}, {"consistent", ""}} {
		for _, encoding := range encodings {
			name := fmt.Sprintf("%s: %s %s", prefix, source.name, encoding.name)
			if err := s.lists(ctx, name, metav1.ListOptions{ResourceVersion: source.version}, encoding.accept, sets); err != nil {
				return err
			}
		}
	}
	return nil
}

// lists reads sets some times, page by page if the options have a limit. The time of each list is counted with and without decoding.
func (s *space) lists(ctx context.Context, name string, options metav1.ListOptions, accept string, sets int) error {
	config := s.Cluster.Config(runtime.ContentTypeJSON)
	config.AcceptContentTypes = accept
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	var received, decoded []float64
	size := 0
	phase, err := s.measure(ctx, name, func(ctx context.Context) error {
		for range listsAtATime {
			begin := time.Now()
			read, err := s.readList(ctx, client, options)
			if err != nil {
				return err
			}
			received, decoded = append(received, millis(read.receiving)), append(decoded, millis(time.Since(begin)))
			if size = read.bytes; read.sets != sets {
				return fmt.Errorf("the list has %d sets, must have %d", read.sets, sets)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	phase.Add("received", report.UnitMillis, report.Median(received))
	phase.Add("decoded", report.UnitMillis, report.Median(decoded))
	phase.Add("bytes", report.UnitBytes, float64(size))
	phase.Add("bytes of each", report.UnitBytes, float64(size)/float64(sets))
	return nil
}

// listed is what was read in all pages of a list.
type listed struct {
	sets, bytes, pages int
	// receiving is the time until the answers were there, without decoding.
	receiving time.Duration
}

func (s *space) readList(ctx context.Context, client versioned.Interface, options metav1.ListOptions) (l listed, err error) {
	for {
		begin := time.Now()
		data, err := client.JobsetV1alpha2().RESTClient().Get().Namespace(s.name).Resource("jobsets").
			VersionedParams(&options, scheme.ParameterCodec).DoRaw(ctx)
		if err != nil {
			return l, err
		}
		l.receiving += time.Since(begin)
		sets, next, err := decode(data)
		if err != nil {
			return l, err
		}
		l.sets, l.bytes, l.pages = l.sets+sets, l.bytes+len(data), l.pages+1
		if options.Continue = next; next == "" {
			return l, nil
		}
	}
}

// informers starts many at once, each with a connection of its own.
func (s *space) informers(ctx context.Context, sets int) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	_, err := s.measure(ctx, fmt.Sprintf("%d: informers start", sets), func(ctx context.Context) error {
		var starting sync.WaitGroup
		failures := make([]error, s.Sizes.Informers)
		for i := range failures {
			starting.Go(func() { failures[i] = s.startInformer(watching) })
		}
		starting.Wait()
		return all(ctx, len(failures), 1, func(i int) error { return failures[i] })
	})
	return err
}

func (s *space) startInformer(ctx context.Context) error {
	client, err := s.ownConnection()
	if err != nil {
		return err
	}
	factory := externalversions.NewSharedInformerFactoryWithOptions(client, 0, externalversions.WithNamespace(s.name))
	informer := factory.Jobset().V1alpha2().JobSets().Informer()
	go informer.RunWithContext(ctx)
	waiting, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	if !cache.WaitForCacheSync(waiting.Done(), informer.HasSynced) {
		return fmt.Errorf("an informer has not synced within %v", s.Timeout)
	}
	return nil
}

// ownConnection returns a client that shares no connection with others. A dialer of its own is what keeps them apart.
func (s *space) ownConnection() (versioned.Interface, error) {
	config := s.Cluster.Config(runtime.ContentTypeProtobuf)
	config.Dial = (&net.Dialer{Timeout: s.Timeout}).DialContext
	return versioned.NewForConfig(config)
}

// decode returns the number of sets, or of rows of a table, and where the next page begins.
func decode(data []byte) (n int, next string, err error) {
	object, _, err := decoder.Decode(data, nil, nil)
	if err != nil {
		return 0, "", fmt.Errorf("decoding a list: %w", err)
	}
	if n, err = lengthOf(object); err != nil {
		return 0, "", err
	}
	list, err := meta.ListAccessor(object)
	if err != nil {
		return 0, "", err
	}
	return n, list.GetContinue(), nil
}
