; Reads histories in EDN, and checks what Jepsen demands of one: indices and times grow, a process
; has one request at a time, and one whose request has no known outcome does nothing more.
(require '[clojure.edn :as edn] '[clojure.java.io :as io])

(defn check [{:keys [index time open]} {:keys [type process f] :as op}]
  (assert (= index (:index op)) op)
  (assert (<= time (:time op)) op)
  (assert (keyword? f) op)
  {:index (inc index)
   :time (:time op)
   :open (cond
           (= process :nemesis) (do (assert (= type :info) op) open)
           (= type :invoke) (do (assert (nat-int? process) op)
                                (assert (not (contains? open process)) op)
                                (assoc open process f))
           :else (do (assert (contains? #{:ok :fail :info} type) op)
                     (assert (= f (get open process)) op)
                     (if (= type :info) (assoc open process nil) (dissoc open process))))})

(doseq [path *command-line-args*]
  (with-open [in (io/reader path)]
    (let [end (reduce check {:index 0 :time 0 :open {}} (map edn/read-string (line-seq in)))]
      (assert (every? nil? (vals (:open end))) "a request has no completion")
      (println path (:index end)))))
