// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
)

// atRest are limits of a program without work: resident memory in MiB, and processor time in thousandths of a core.
// They are far above what is measured.
var atRest = map[string]struct{ memory, processor int64 }{
	"jobset-apiserver":  {300, 100},
	"jobset-controller": {150, 50},
}

// periods is how often a program is measured that is beyond its limits.
const periods = 3

// TestProgramsAtRest measures our programs in their containers while nothing else happens: it is not parallel, so that no parallel
// test of the package begins before it has ended. What the test before it left to be done is over in one of three periods.
// JOBSET_NODES_REST is the length of a period, 5s by default.
func TestProgramsAtRest(t *testing.T) {
	period, err := time.ParseDuration(os.Getenv("JOBSET_NODES_REST"))
	if err != nil {
		period = 5 * time.Second
	}
	pods, err := core.CoreV1().Pods(apiservice.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	measured := 0
	for program, limit := range atRest {
		for _, pod := range pods.Items {
			if !strings.HasPrefix(pod.Name, program+"-") || len(pod.Status.ContainerStatuses) == 0 {
				continue
			}
			measured++
			pids, err := processes(pod.Status.ContainerStatuses[0])
			if err != nil || len(pids) != 1 {
				t.Fatalf("processes %v of %s, error %v", pids, pod.Name, err)
			}
			var memory, processor int64
			for range periods {
				if memory, processor, err = usage(pids[0], period); err != nil {
					t.Fatal(err)
				}
				t.Logf("%s: %d MiB, %d thousandths of a core in %s", pod.Name, memory, processor, period)
				if memory <= limit.memory && processor <= limit.processor {
					break
				}
			}
			if memory > limit.memory || processor > limit.processor {
				t.Errorf("%s uses %d MiB and %d thousandths of a core at rest, the limits are %+v", pod.Name, memory, processor, limit)
			}
		}
	}
	if measured < len(atRest) {
		t.Errorf("%d programs were measured, want %d", measured, len(atRest))
	}
}

// usage returns the resident memory of a process in MiB, and what it uses of the processor in a period, in thousandths of a core.
func usage(pid int, period time.Duration) (memory, processor int64, err error) {
	before, err := processorTime(pid)
	if err != nil {
		return 0, 0, err
	}
	time.Sleep(period)
	after, err := processorTime(pid)
	if err != nil {
		return 0, 0, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	_, line, _ := strings.Cut(string(status), "VmRSS:")
	var kib int64
	_, err = fmt.Sscan(line, &kib)
	return kib >> 10, (after - before).Milliseconds() * 1000 / period.Milliseconds(), err
}

// processorTime is what all threads of a process have used so far. Its unit, a tick, is a hundredth of a second.
func processorTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name of the program, in parentheses, is the second field and may contain anything; user and system time are fields 14 and 15.
	fields := strings.Fields(string(stat[strings.LastIndex(string(stat), ")")+1:]))
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return 0, err
	}
	return time.Duration(user+system) * 10 * time.Millisecond, nil
}
