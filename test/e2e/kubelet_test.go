// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"
)

// kubelet plays the part of kubelet that KWOK does not: the logs of the containers of one node. kube-apiserver asks it as it
// asks any kubelet, so that what lies between kubectl and the log is real.
type kubelet struct {
	*kubectl
	node   string
	server *httptest.Server

	lock sync.Mutex
	// logs are lines by "pod/container".
	logs map[string][]logLine
	// ended has the containers whose logs have ended.
	ended map[string]bool
	// cut are connections that are to be broken once.
	cut map[string]int
	// asked counts the requests.
	asked map[string]int
}

type logLine struct {
	at   time.Time
	text string
}

// newKubelet makes a node whose logs the test writes. Pods come to it by its host name.
func newKubelet(t *testing.T, k *kubectl) *kubelet {
	t.Helper()
	l := &kubelet{
		kubectl: k, node: "logs-" + k.namespace,
		logs: map[string][]logLine{}, ended: map[string]bool{}, cut: map[string]int{}, asked: map[string]int{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", l.serve)
	l.server = httptest.NewTLSServer(mux)
	t.Cleanup(func() {
		if t.Failed() {
			k.dump()
		}
		// Without their node, nothing would end the pods.
		k.run("", "delete", "jobsets", "--all", "--cascade=foreground", "--timeout=5m")
		k.run("", "delete", "node", l.node, "--wait=false")
		l.server.CloseClientConnections()
		l.server.Close()
	})
	_, port, err := net.SplitHostPort(l.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	k.okIn(fmt.Sprintf(`apiVersion: v1
kind: Node
metadata:
  name: %[1]s
  labels: {kubernetes.io/hostname: %[1]s}
  annotations: {kwok.x-k8s.io/node: fake}
spec:
  taints: [{key: logs, value: "true", effect: NoSchedule}]
status:
  addresses: [{type: InternalIP, address: 127.0.0.1}]
  daemonEndpoints: {kubeletEndpoint: {Port: %[2]s}}
  allocatable: {cpu: "64", memory: 512Gi, pods: "250"}
  capacity: {cpu: "64", memory: 512Gi, pods: "250"}
`, l.node, port), "create", "-f", "-")
	return l
}

// here are the lines of a pod template that bring its pods to the node.
func (l *kubelet) here() string {
	return fmt.Sprintf("nodeSelector: {kubernetes.io/hostname: %s}\ntolerations: [{key: logs, operator: Exists}]", l.node)
}

// write appends lines to the log of a container.
func (l *kubelet) write(pod, container string, lines ...string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	key := pod + "/" + container
	for _, line := range lines {
		l.logs[key] = append(l.logs[key], logLine{time.Now(), line})
	}
}

// end ends the log of a container.
func (l *kubelet) end(pod, container string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.ended[pod+"/"+container] = true
}

// breakAfter breaks the next connection of a container's log after so many lines.
func (l *kubelet) breakAfter(pod, container string, lines int) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.cut[pod+"/"+container] = lines
}

func (l *kubelet) requests(pod, container string) int {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.asked[pod+"/"+container]
}

// serve answers as kubelet does.
func (l *kubelet) serve(w http.ResponseWriter, r *http.Request) {
	key := r.PathValue("pod") + "/" + r.PathValue("container")
	query := r.URL.Query()
	l.lock.Lock()
	l.asked[key]++
	lines, cut := l.logs[key], l.cut[key]
	delete(l.cut, key)
	l.lock.Unlock()

	next := 0
	if tail, err := strconv.Atoi(query.Get("tailLines")); err == nil {
		next = max(0, len(lines)-tail)
	}
	since, _ := time.Parse(time.RFC3339, query.Get("sinceTime"))
	if seconds, err := strconv.Atoi(query.Get("sinceSeconds")); err == nil {
		since = time.Now().Add(-time.Duration(seconds) * time.Second)
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusOK)
	sent := 0
	for {
		l.lock.Lock()
		lines, ended := l.logs[key], l.ended[key]
		l.lock.Unlock()
		for ; next < len(lines); next++ {
			if lines[next].at.Before(since) {
				continue
			}
			if cut > 0 && sent == cut {
				panic(http.ErrAbortHandler)
			}
			text := lines[next].text + "\n"
			if query.Get("timestamps") == "true" {
				text = lines[next].at.UTC().Format(time.RFC3339Nano) + " " + text
			}
			if _, err := fmt.Fprint(w, text); err != nil {
				return
			}
			sent++
		}
		w.(http.Flusher).Flush()
		if ended || query.Get("follow") != "true" {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}
