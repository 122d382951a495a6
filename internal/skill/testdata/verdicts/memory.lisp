; The memex both see.
(:ID "plan-1" :TYPE :HEADLINE :ATTRIBUTES (:TITLE "Flight Plan" :TODO "APPROVED" :TAGS ("FLIGHT_PLAN") :ACTION "(:TYPE :REQUEST :TARGET :SHELL :PAYLOAD (:CMD \"ls\"))") :CONTENT "Approved yesterday." :VERSION 3)
(:ID "plan-2" :TYPE :HEADLINE :ATTRIBUTES (:TITLE "Flight Plan" :TODO "PLAN" :TAGS ("FLIGHT_PLAN") :ACTION "(:TYPE :REQUEST :TARGET :SHELL :PAYLOAD (:CMD \"date\"))") :CONTENT "Nobody has looked." :VERSION 4)
(:ID "plan-3" :TYPE :HEADLINE :ATTRIBUTES (:TITLE "Broken Plan" :TODO "APPROVED" :TAGS ("flight_plan") :ACTION "(:TYPE :REQUEST") :CONTENT NIL :VERSION 4)
(:ID "done-1" :TYPE :HEADLINE :ATTRIBUTES (:TITLE "Not a plan" :TODO "APPROVED" :TAGS ("work")) :CONTENT "See id:note-1 and id:gone-1." :VERSION 5)
(:ID "note-1" :TYPE :HEADLINE :ATTRIBUTES (:TITLE "Ferns" :TAGS ("plants")) :CONTENT "Water them, as in id:note-2." :VERSION 6)
(:ID "note-2" :TYPE :HEADLINE :ATTRIBUTES (:TITLE "Diary" :TAGS ("@personal")) :CONTENT "Alone with id:gone-2 and id:gone-1" :VERSION 7)
(:ID "note-3" :TYPE :HEADLINE :ATTRIBUTES (:TITLE "Alone") :CONTENT "No links here." :VERSION 8)
(:ID "file-1" :TYPE :FILE :ATTRIBUTES (:TITLE "All of it") :CONTENT NIL :VERSION 9)
