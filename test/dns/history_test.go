// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// slack is how much later than CoreDNS the test may see a pod.
const slack = 2 * time.Second

// spell is the time in which a pod had an address; the end is zero while it lasts.
type spell struct {
	address  string
	from, to time.Time
}

// history is who had which address when.
type history struct {
	mu    sync.Mutex
	hosts map[string][]*spell
	// open are the spells of pods that run, by UID.
	open map[string]*spell
	// replaced is the number of pods that are gone.
	replaced int
}

// follow watches pods until the context ends.
func (h *history) follow(ctx context.Context, t *testing.T, namespace string) {
	events, err := kube.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Errorf("watching pods: %v", err)
		return
	}
	for event := range events.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok {
			h.see(pod, event.Type == watch.Deleted)
		}
	}
	if ctx.Err() == nil {
		t.Error("the watch of pods has ended")
	}
}

func (h *history) see(pod *corev1.Pod, gone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	uid, now := string(pod.UID), time.Now()
	ended := gone || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	s := h.open[uid]
	switch {
	case s == nil && !ended && pod.Status.PodIP != "":
		s = &spell{address: pod.Status.PodIP, from: now}
		h.open[uid], h.hosts[pod.Spec.Hostname] = s, append(h.hosts[pod.Spec.Hostname], s)
	case s != nil && ended:
		s.to = now
		delete(h.open, uid)
		h.replaced++
	}
}

// report prints what the answers were worth, and fails if one was wrong.
func (h *history) report(t *testing.T, answers []answer) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	var ages []time.Duration
	wrong, outdated, elsewhere := 0, 0, 0
	for _, a := range answers {
		age, known := h.age(a)
		switch {
		case a.err != nil:
			t.Logf("a look-up of %q failed: %v", a.host, a.err)
			wrong++
		case !known || age > stale:
			t.Errorf("a look-up of %q found %v, which is %s old (known: %t)", a.host, a.found, age, known)
			wrong++
		case age > 0:
			outdated++
			if h.elsewhere(a) {
				elsewhere++
			}
		}
		ages = append(ages, age)
	}
	slices.Sort(ages)
	at := func(share float64) time.Duration {
		return ages[int(share*float64(len(ages)-1))].Round(time.Millisecond)
	}
	t.Logf("%d look-ups while %d pods were replaced: %d wrong, %d outdated, %d of them at an address of another pod; age p50 %s, p90 %s, p99 %s, max %s",
		len(answers), h.replaced, wrong, outdated, elsewhere, at(0.5), at(0.9), at(0.99), at(1))
	if wrong > 0 || h.replaced == 0 {
		t.Errorf("%d wrong answers, %d pods replaced", wrong, h.replaced)
	}
}

// age returns for how long an answer had not been true when it was asked for; known is false if it never was.
func (h *history) age(a answer) (age time.Duration, known bool) {
	if a.host == "" {
		for _, host := range a.found {
			if len(h.hosts[host]) == 0 {
				return 0, false
			}
		}
		for host := range h.hosts {
			if !slices.Contains(a.found, host) {
				age = max(age, h.lacking(host, a, nil))
			}
		}
		return age, true
	}
	for _, address := range a.found {
		since, ever := h.past(a.host, address, a)
		if !ever {
			return 0, false
		}
		age = max(age, since)
	}
	return max(age, h.lacking(a.host, a, a.found)), true
}

// past returns for how long a host had not had an address.
func (h *history) past(host, address string, a answer) (age time.Duration, ever bool) {
	for _, s := range h.hosts[host] {
		if s.address != address || s.from.After(a.ended.Add(slack)) {
			continue
		}
		since := time.Duration(0)
		if !s.to.IsZero() {
			since = max(0, a.begun.Sub(s.to))
		}
		if !ever || since < age {
			age = since
		}
		ever = true
	}
	return age, ever
}

// lacking returns for how long a host has had an address that is not among those found.
func (h *history) lacking(host string, a answer, found []string) (age time.Duration) {
	for _, s := range h.hosts[host] {
		if s.from.Before(a.begun) && (s.to.IsZero() || s.to.After(a.ended)) && !slices.Contains(found, s.address) {
			age = max(age, a.begun.Sub(s.from))
		}
	}
	return age
}

// elsewhere returns whether an answer had an address that a pod of another host had at that time.
func (h *history) elsewhere(a answer) bool {
	for host, spells := range h.hosts {
		for _, s := range spells {
			if host != a.host && a.host != "" && slices.Contains(a.found, s.address) && s.from.Before(a.begun) && (s.to.IsZero() || s.to.After(a.ended)) {
				return true
			}
		}
	}
	return false
}
