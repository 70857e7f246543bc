// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// sendFrom sends a question from an address, and returns the status code.
func sendFrom(h http.Handler, address string, body io.Reader) int {
	w, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, path, body)
	req.Header.Set("Content-Type", "application/json")
	req.RemoteAddr = address
	h.ServeHTTP(w, req)
	return w.Code
}

// slow is a body of which nothing arrives until the context ends.
type slow struct{ context.Context }

func (s slow) Read([]byte) (int, error) {
	<-s.Done()
	return 0, io.ErrUnexpectedEOF
}

// TestSlowBodiesDelayNobody is the attack: 220 slow connections delayed each pod by 3 to 5 seconds. The attacker has
// the address of kube-apiserver.
func TestSlowBodiesDelayNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(Callers{}, Webhook{Path: path, Mutate: labels})
		ctx, end := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for i := range 220 {
			group.Go(func() { sendFrom(h, fmt.Sprint("10.0.0.1:", i), slow{ctx}) })
		}
		synctest.Wait()
		begin := time.Now()
		for range 10 {
			if code := sendFrom(h, "10.0.0.1:9", bytes.NewReader(review(nil))); code != http.StatusOK {
				t.Errorf("answered %d", code)
			}
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("ten pods took %v beside slow bodies", took)
		}
		end()
		group.Wait()
		if h.shares.open != 0 || h.shares.receiving.Len() != 0 {
			t.Errorf("%d questions are open, %d are received", h.shares.open, h.shares.receiving.Len())
		}
	})
}

// TestOldestGivesWay fills the places of an address, and then all places.
func TestOldestGivesWay(t *testing.T) {
	s := newHandler(Callers{}, Webhook{}).shares
	gaveWay := map[string]int{}
	enter := func(address string) *request { return s.enter(address, func() { gaveWay[address]++ }) }
	var requests []*request
	for range maxOpenOfAddress {
		requests = append(requests, enter("a"))
	}
	if enter("a") == nil || gaveWay["a"] != 1 || requests[0].arrive() || !requests[1].arrive() {
		t.Errorf("%d questions gave way, want the oldest", gaveWay["a"])
	}
	for i := 0; s.open < maxOpen; i++ {
		enter(fmt.Sprint("b", i/maxOpenOfAddress))
	}
	if enter("c") == nil || gaveWay["a"] != 2 {
		t.Errorf("%v questions gave way, want another of the oldest address", gaveWay)
	}
	// What has arrived does not give way.
	full := newHandler(Callers{}, Webhook{}).shares
	for range maxOpenOfAddress {
		full.enter("a", func() {}).arrive()
	}
	if full.enter("a", func() {}) != nil || full.enter("b", func() {}) == nil {
		t.Error("an address must have no more questions, and another must have some")
	}
}

// TestSmallPodsComeFirst is the attack: 20 clients with pods of 1.6 MB. They are paced, and a small pod is answered before those that wait.
func TestSmallPodsComeFirst(t *testing.T) {
	body := large("a long variable")
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		h := newHandler(Callers{}, Webhook{Path: path, Mutate: func(pod *corev1.Pod, _ string) error {
			kind := "large"
			if len(pod.Spec.Containers[0].Env) == 0 {
				kind = "small"
			}
			mu.Lock()
			order = append(order, kind)
			mu.Unlock()
			time.Sleep(100 * time.Millisecond)
			return nil
		}})
		h.queue = newQueue(1)
		var group sync.WaitGroup
		codes := map[int]int{}
		for i := range 20 {
			group.Go(func() {
				code := sendFrom(h, fmt.Sprint("10.0.0.1:", i), bytes.NewReader(body))
				mu.Lock()
				defer mu.Unlock()
				codes[code]++
			})
		}
		synctest.Wait()
		begin := time.Now()
		if code := sendFrom(h, "10.0.0.1:9", bytes.NewReader(review(nil))); code != http.StatusOK || time.Since(begin) > 200*time.Millisecond {
			t.Errorf("answered %d after %v", code, time.Since(begin))
		}
		group.Wait()
		if at := slices.Index(order, "small"); at != 1 {
			t.Errorf("the small pod was answered as number %d of %d", at+1, len(order))
		}
		// 5 fit into the burst of the address, and 2 MiB become due each second until the questions end.
		if codes[http.StatusOK] < 8 || codes[http.StatusOK] > 12 || codes[http.StatusOK]+codes[http.StatusServiceUnavailable] != 20 {
			t.Errorf("large pods were answered with %v", codes)
		}
	})
}

// TestRefusedPodsUseNothing sends large pods without a pause for 15 seconds. Each refusal takes a second, and soon afterwards
// large pods are answered as before, also those of another address. If refusals used up the pace, it would be used up for minutes.
func TestRefusedPodsUseNothing(t *testing.T) {
	const callers, seconds = 20, 15
	body := large("a long variable")
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(Callers{}, Webhook{Path: path, Mutate: labels})
		var group sync.WaitGroup
		var sent atomic.Int64
		begin := time.Now()
		for i := range callers {
			group.Go(func() {
				for time.Since(begin) < seconds*time.Second {
					sendFrom(h, fmt.Sprint("10.0.0.1:", i), bytes.NewReader(body))
					sent.Add(1)
				}
			})
		}
		group.Wait()
		if sent.Load() < callers || sent.Load() > callers*seconds+100 {
			t.Errorf("%d callers sent %d questions in %d seconds", callers, sent.Load(), seconds)
		}
		time.Sleep(time.Second)
		for _, address := range []string{"10.0.0.2:1", "10.0.0.1:1"} {
			if code := sendFrom(h, address, bytes.NewReader(body)); code != http.StatusOK {
				t.Errorf("%s was answered with %d after the others had ended", address, code)
			}
		}
	})
}

// TestRefusalsTakeNoPlaces sends more questions of medium size at once than an address may have. Those that are refused must leave
// places for a small one while their callers wait.
func TestRefusalsTakeNoPlaces(t *testing.T) {
	body := append(bytes.Repeat([]byte(" "), smallBody+1), review(nil)...)
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(Callers{}, Webhook{Path: path, Mutate: labels})
		var group sync.WaitGroup
		for i := range 3 * maxOpenOfAddress {
			group.Go(func() { sendFrom(h, fmt.Sprint("10.0.0.1:", i), bytes.NewReader(body)) })
			if i%100 == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		if code := sendFrom(h, "10.0.0.1:9", bytes.NewReader(review(nil))); code != http.StatusOK {
			t.Errorf("a small question was answered with %d", code)
		}
		group.Wait()
	})
}

// TestGoodQuestionsBuyNothing is the attack: 8 addresses ask good questions for some minutes, and then flood the webhook with pods of
// 1.6 MB. An address that asks for the first time then, such as another kube-apiserver, has the next turn. Before, more than a hundred
// questions of the attackers came before it.
func TestGoodQuestionsBuyNothing(t *testing.T) {
	body := large("a long variable")
	synctest.Test(t, func(t *testing.T) {
		var answers atomic.Int64
		h := newHandler(Callers{}, Webhook{Path: path, Mutate: func(pod *corev1.Pod, _ string) error {
			if len(pod.Spec.Containers[0].Env) > 0 {
				time.Sleep(100 * time.Millisecond)
				answers.Add(1)
			}
			return nil
		}})
		h.queue = newQueue(1)
		for range 12 {
			for i := range 8 {
				if code := sendFrom(h, fmt.Sprintf("10.0.1.%d:1", i), bytes.NewReader(review(nil))); code != http.StatusOK {
					t.Fatalf("a good question was answered with %d", code)
				}
			}
			time.Sleep(10 * time.Second)
		}
		var group sync.WaitGroup
		var ended atomic.Bool
		for i := range 24 {
			group.Go(func() {
				for !ended.Load() {
					sendFrom(h, fmt.Sprintf("10.0.1.%d:%d", i%8, 1+i), bytes.NewReader(body))
				}
			})
		}
		time.Sleep(2*time.Second + 50*time.Millisecond)
		for range 2 {
			before := answers.Load()
			if code := sendFrom(h, "10.0.0.1:1", bytes.NewReader(body)); code != http.StatusOK {
				t.Errorf("answered %d", code)
			}
			if turns := answers.Load() - before; turns > 3 {
				t.Errorf("answered after %d turns, want its own and at most two", turns)
			}
			time.Sleep(2 * time.Second)
		}
		ended.Store(true)
		group.Wait()
	})
}
