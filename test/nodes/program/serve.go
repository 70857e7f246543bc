// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// httpPort is where programs answer requests.
const httpPort = "8080"

// server answers with $ANSWER. /readyz is for the probe of kubelet, the other paths below / are for tests.
type server struct {
	hidden atomic.Bool
	probes atomic.Int64
	// others are the workers of its group that the server is the leader of. It answers and is ready only if they give the
	// same answer as the leader: while a group is replaced, the names may be those of workers of the group before, which
	// are about to end.
	others []string
	client http.Client
	exit   chan int
}

// serve answers until SIGTERM, when it ends what has begun and then fails, or until /exit?code=N. With $HIDDEN it is
// not ready before /ready?is=true.
func serve(ctx context.Context) (int, error) {
	// On a busy machine a packet to or from the DNS may be lost, and resolvers ask again after five seconds.
	s := &server{client: http.Client{Timeout: 8 * time.Second}, exit: make(chan int, 1), others: workers()}
	s.hidden.Store(os.Getenv("HIDDEN") != "")
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, true) })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		s.probes.Add(1)
		s.answer(w, r, !s.hidden.Load())
	})
	mux.HandleFunc("/ready", func(_ http.ResponseWriter, r *http.Request) { s.hidden.Store(r.FormValue("is") == "false") })
	mux.HandleFunc("/probes", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s.probes.Load()) })
	mux.HandleFunc("/exit", func(_ http.ResponseWriter, r *http.Request) {
		if code, err := strconv.Atoi(r.FormValue("code")); err == nil {
			s.exit <- code
		}
	})
	return s.listen(ctx, mux)
}

func (s *server) listen(ctx context.Context, mux http.Handler) (int, error) {
	httpServer := &http.Server{Addr: ":" + httpPort, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- httpServer.ListenAndServe() }()
	var code int
	select {
	case err := <-failed:
		return 1, err
	case code = <-s.exit:
	case <-ctx.Done():
		code = terminated
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return code, httpServer.Shutdown(ctx)
}

// workers returns the addresses of the workers of the group of a leader.
func workers() (addresses []string) {
	size, err := strconv.Atoi(os.Getenv("LWS_GROUP_SIZE"))
	if err != nil || os.Getenv("LWS_WORKER_INDEX") != "0" {
		return nil
	}
	leader, domain, _ := strings.Cut(os.Getenv("LWS_LEADER_ADDRESS"), ".")
	for i := 1; i < size; i++ {
		addresses = append(addresses, fmt.Sprintf("http://%s-%d.%s:%s/", leader, i, domain, httpPort))
	}
	return addresses
}

// answer is the answer of the whole group.
func (s *server) answer(w http.ResponseWriter, r *http.Request, good bool) {
	if !good {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
		return
	}
	own := os.Getenv("ANSWER")
	answers := []string{own}
	for _, other := range s.others {
		answer, err := get(r.Context(), &s.client, other)
		if err == nil && answer != own {
			err = fmt.Errorf("%s answers %q", other, answer)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		answers = append(answers, answer)
	}
	fmt.Fprint(w, strings.Join(answers, " "))
}

// get returns the body of an answer of success, of at most 1 KiB.
func get(ctx context.Context, client *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(body)))
	}
	return string(body), err
}

// Counts are the requests of a client, its failures, and how often it got each answer.
type counts struct {
	Requests, Failures int
	Answers, Errors    map[string]int
}

// load requests a URL with a connection each 20 times a second, and returns the counts at /.
func load(ctx context.Context, url string) error {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	ended := make(chan func(*counts))
	asked := make(chan chan counts)
	s := &server{exit: make(chan int)}
	go func() {
		_, _ = s.listen(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			answer := make(chan counts)
			asked <- answer
			_ = json.NewEncoder(w).Encode(<-answer)
		}))
	}()
	c := counts{Answers: map[string]int{}, Errors: map[string]int{}}
	// Until the Service is known on the node, nothing is counted.
	for ctx.Err() == nil {
		if _, err := get(ctx, client, url); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	for ticker := time.NewTicker(50 * time.Millisecond); ; {
		select {
		case <-ticker.C:
			go func() {
				answer, err := get(ctx, client, url)
				ended <- func(c *counts) { c.add(answer, err) }
			}()
		case count := <-ended:
			count(&c)
		case answer := <-asked:
			answer <- c
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *counts) add(answer string, err error) {
	c.Requests++
	if err == nil {
		c.Answers[answer]++
		return
	}
	c.Failures++
	c.Errors[err.Error()]++
	fmt.Println(time.Now().Format(time.TimeOnly), err)
}
