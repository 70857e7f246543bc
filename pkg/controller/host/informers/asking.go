// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"time"

	"k8s.io/klog/v2"
)

// serves returns whether the server has answered a question since the time at which a request failed. One caller asks; those that come
// meanwhile wait for the answer. Nothing else waits for it: the lock is not held.
func (s *Server) serves(ctx context.Context, failed time.Time, cause error) bool {
	s.mu.Lock()
	if s.answered.After(failed) {
		s.mu.Unlock()
		return true
	}
	if asking := s.asking; asking != nil {
		s.mu.Unlock()
		select {
		case <-asking:
		case <-ctx.Done():
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.answered.After(failed)
	}
	if time.Since(s.asked) < minPause {
		s.mu.Unlock()
		return false
	}
	asking := make(chan struct{})
	s.asked, s.asking = time.Now(), asking
	s.mu.Unlock()
	defer close(asking)
	return s.ask(ctx, cause)
}

// ask asks the question, and notes the answer.
func (s *Server) ask(ctx context.Context, cause error) bool {
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := s.probe(limited)
	if err != nil {
		cause = err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = nil
	if time.Since(s.reported) >= reportEvery {
		s.reported = time.Now()
		klog.FromContext(ctx).Info("Waiting until the API is served", "api", s.name, "reason", cause)
	}
	if err != nil {
		return false
	}
	s.answered = time.Now()
	return true
}
