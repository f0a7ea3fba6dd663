package layers

import (
	"runtime"
	"sync"
)

// parallel runs tasks 0 to count-1 on all processors and gives the first error.
func parallel(count int, task func(int) error) error {
	var (
		group sync.WaitGroup
		mutex sync.Mutex
		next  int
		first error
	)
	take := func() (int, bool) {
		mutex.Lock()
		defer mutex.Unlock()
		next++
		return next - 1, next <= count && first == nil
	}
	for range min(runtime.GOMAXPROCS(0), count) {
		group.Go(func() {
			for index, ok := take(); ok; index, ok = take() {
				if err := task(index); err != nil {
					mutex.Lock()
					if first == nil {
						first = err
					}
					mutex.Unlock()
				}
			}
		})
	}
	group.Wait()
	return first
}
